"""Environments with possibly endless episodes get a step limit; other environments do not."""

import pytest

import escalade
from escalade.config.files import read_config
from escalade.storage.run_folder import RunFolder

STUCK = "tests.environments:Stuck-v0"
SMALL = {
    "preset": None,
    "head": "plain",
    "population": 6,
    "workers": 0,
    "generations": 2,
    "eval_episodes": 2,
    "verbose": False,
}


def config_of(run):
    return read_config(RunFolder.open(run))


def notes_of(run):
    notes = RunFolder.open(run).notes
    return notes.read_text() if notes.exists() else ""


def test_endless_episodes_are_truncated_in_training_and_evaluations(tmp_path):
    run = escalade.train(STUCK, run_dir=tmp_path / "run", **SMALL)
    config = config_of(run)
    assert (config.cutoff, config.max_episode_steps) == ("adaptive:1000,0.5,1.5", 5000)
    assert set(escalade.evaluate(run, episodes=3, workers=0).lengths) <= {20, 5000}
    assert run.summary["env_steps"] <= 6 * (1000 + 1500)
    assert notes_of(run).count("has no step limit") == 1


def test_resumed_run_has_the_same_limits(tmp_path):
    whole = escalade.train(STUCK, run_dir=tmp_path / "whole", **SMALL)
    half = escalade.train(STUCK, run_dir=tmp_path / "half", **SMALL | {"generations": 1})
    again = escalade.resume(half, generations=2, verbose=False)
    assert again.summary["params_sha256"] == whole.summary["params_sha256"]
    assert config_of(again).max_episode_steps == 5000


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_episode_steps": 30}, (None, 30)),
        ({"cutoff": 50}, ("50", 5000)),
        ({"cutoff": 9000}, ("9000", 9000)),
        ({"strategy": "deep-ga"}, ("1000", 5000)),  # compares generations, so the cap must not change
    ],
)
def test_explicit_limits_are_kept(options, expected, tmp_path):
    run = escalade.train(STUCK, run_dir=tmp_path / "run", **SMALL | {"generations": 1} | options)
    assert (config_of(run).cutoff, config_of(run).max_episode_steps) == expected


def test_environment_that_ends_its_episodes_gets_no_limit_note(tmp_path):
    run = escalade.train("tests.environments:Walk-v0", run_dir=tmp_path / "run", **SMALL)
    assert "limit" not in notes_of(run)


def test_check_detects_endless_episodes_with_a_constant_action():
    steps = next(finding for finding in escalade.check(STUCK).findings if finding.name == "steps")
    assert steps.status == "warning"
    assert "a constant action" in steps.detail
    assert "`max_episode_steps`" in steps.detail
