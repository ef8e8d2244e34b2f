"""Runs with sampled actions, with masks, or with bounds outside the output range."""

import pytest

import escalade
from escalade.recorders import read_notes, read_progress

SHORT = {"workers": 0, "verbose": False, "seed": 1}
DOORS, MASKED = "tests.environments:Doors", "tests.environments:Masked"


def test_sampled_actions_solve_a_task_that_one_best_action_cannot(tmp_path):
    run = escalade.train(DOORS, head="sample", generations=30, run_dir=tmp_path / "run", **SHORT)
    assert run.summary["eval_return_mean"] >= 0.85
    columns = read_progress(run.folder.progress)
    assert set(columns["eval_return_deterministic"]) >= {0.0}  # the best action opens one door at most


def test_the_hint_for_a_stalled_run_suggests_head_sample(tmp_path):
    run = escalade.train(DOORS, head="plain", generations=2, run_dir=tmp_path / "run", **SHORT)
    assert run.summary["eval_return_mean"] == 0
    assert any("`head=sample`" in text for text in notes_of(run))


def notes_of(run):
    return [str(note) for note in read_notes(run.folder.notes)]


@pytest.mark.parametrize("env", [DOORS, MASKED])
def test_sampled_actions_are_identical_with_workers_and_after_resume(env, tmp_path):
    options = SHORT | {"head": "sample"}
    whole = escalade.train(env, generations=4, run_dir=tmp_path / "whole", **options)
    split = escalade.train(env, generations=2, run_dir=tmp_path / "split", **options | {"workers": 2})
    resumed = escalade.resume(split.folder.path, generations=4, verbose=False)
    assert resumed.summary["params_sha256"] == whole.summary["params_sha256"]


@pytest.mark.parametrize("kwargs", [{}, {"inside": True}, {"pair": True}])
@pytest.mark.parametrize("head", ["sample", "plain"])
def test_masked_actions_are_never_taken(kwargs, head, tmp_path):
    run = escalade.train(
        MASKED, head=head, env_kwargs=kwargs, generations=3, run_dir=tmp_path / "run", **SHORT
    )
    assert run.summary["eval_return_mean"] > 0  # the environment raises on an illegal action


@pytest.mark.parametrize("kwargs", [{}, {"inside": True}, {"pair": True}])
def test_check_takes_legal_actions(kwargs):
    report = escalade.check(MASKED, env_kwargs=kwargs)
    assert report.ok, report.findings


def test_an_illegal_action_is_reported_in_one_line(tmp_path):
    with pytest.raises(escalade.EnvironmentFailure, match="illegal action 7"):
        escalade.train(MASKED, env_kwargs={"silent": True}, generations=1, run_dir=tmp_path / "run", **SHORT)


def test_actions_outside_the_output_range_are_learnt(tmp_path):
    heats = "tests.environments:Heats"
    run = escalade.train(heats, generations=40, run_dir=tmp_path / "run", **SHORT)
    assert run.summary["eval_return_mean"] > -1
    assert 'action_map = "rescale"' in run.folder.config.read_text()
    pinned = escalade.train(heats, action_map="clip", generations=2, run_dir=tmp_path / "clip", **SHORT)
    assert pinned.summary["eval_return_mean"] < -5
    assert "action_map=rescale" in escalade.check(heats).findings[0].detail


def test_an_illegal_action_error_mentions_masks(tmp_path):
    with pytest.raises(escalade.EnvironmentFailure, match=r'illegal action .*return info\["action_mask"\]'):
        escalade.train(MASKED, env_kwargs={"silent": True}, generations=1, run_dir=tmp_path / "run", **SHORT)
    report = escalade.check(MASKED, env_kwargs={"silent": True})
    assert any('info["action_mask"]' in finding.detail for finding in report.findings)
