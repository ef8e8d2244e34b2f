"""A run's README.md says what it was, and its command gives the run again."""

import json
import shlex

import pytest
import torch
from tests.commands import bits, summary
from torch import nn

import escalade
from escalade.cli import main as cli
from escalade.media.curves import evaluations, read_curves
from escalade.training.limits import Limits
from escalade.training.loop import Loop

TINY = ["--preset", "none", "--population", "4", "--hidden", "3", "--workers", "0", "--generations", "2"]


def had_again(folder):
    """Run the command of a run's card; whether it gives the same bits."""
    lines = (folder / "README.md").read_text().splitlines()
    (line,) = [line.strip() for line in lines if "escalade train" in line]
    assert cli.main(shlex.split(line)[1:]) == 0
    return bits(folder.with_name(f"{folder.name}-again")) == bits(folder)


def test_the_command_of_the_card_gives_the_run_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "CartPole-v1", *TINY, "--target-return", "499", "--run-dir", "first"]) == 0
    text = (tmp_path / "first" / "README.md").read_text()
    assert "# CartPole-v1" in text
    assert "The target of 499 was not met." in text
    assert "2 generations" in text
    assert 'strategy = "ars"' in text
    assert f"torch {torch.__version__}" in text
    (digest,) = [line for line in text.splitlines() if line.startswith("SHA-256")]
    assert had_again(tmp_path / "first")
    assert digest in (tmp_path / "first-again" / "README.md").read_text()


def test_a_module_of_ones_own_is_not_had_again_by_a_command(tmp_path):
    options = {"preset": None, "population": 4, "workers": 0, "generations": 1, "verbose": False}
    run = escalade.train("CartPole-v1", network=nn.Linear(4, 2), run_dir=tmp_path / "run", **options)
    text = (tmp_path / "run" / "README.md").read_text()
    assert (
        "but `generations=1` and no other limit and no target, `preset=None` and the same `network`" in text
    )
    assert "escalade train" not in text
    assert run.summary["network"] == "own"


@pytest.mark.parametrize(
    "flags", [["--preset", "none", "--hidden", "3"], ["--lr", "none", "--target-return", "none"]]
)
def test_a_runs_config_gives_the_run_again_where_a_preset_would_fill_in(flags, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny = ["--population", "4", "--strategy", "ars:top_directions=2", "--workers", "0", "--generations", "2"]
    assert cli.main(["train", "CartPole-v1", *flags, *tiny, "--run-dir", "first"]) == 0
    assert cli.main(["train", "--config", "first/config.toml", "--run-dir", "again"]) == 0
    first, again = (json.loads((tmp_path / run / "summary.json").read_text()) for run in ("first", "again"))
    assert first["params_sha256"] == again["params_sha256"]
    configs = [
        (tmp_path / run / "config.toml").read_text().replace(f"/{run}", "") for run in ("first", "again")
    ]
    assert configs[0].replace('"first"', '"again"') == configs[1]


def test_a_run_that_the_clock_ended_is_given_again_by_counting_its_generations(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        Limits, "reached", lambda limits, progress: "seconds" if progress.generation == 3 else None
    )
    assert cli.main(["train", "CartPole-v1", *TINY[:-2], "--seconds", "3600", "--run-dir", "first"]) == 0
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    text = (tmp_path / "first" / "README.md").read_text()
    assert "Its 3 updates are counted, so that nothing else ends it." in text
    assert had_again(tmp_path / "first")


def test_a_run_that_met_its_target_is_given_again_by_counting_its_updates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ["--preset", "none", "--population", "2", "--hidden", "2", "--workers", "0", "--eval-every", "1"]
    target = ["--seed", "3", "--target-return", "0", "--generations", "9", "--run-dir", "first"]
    assert cli.main(["train", "tests.environments:Chance-v0", *few, *target]) == 0
    found = summary(tmp_path / "first")
    assert (found["solved"], found["generations"]) == (True, 3)
    assert "Its 2 updates are counted" in (tmp_path / "first" / "README.md").read_text()
    assert had_again(tmp_path / "first")


def test_only_a_card_of_ours_is_written_again(tmp_path):
    run = str(tmp_path / "run")
    assert cli.main(["train", "CartPole-v1", *TINY, "--run-dir", run]) == 0
    place = tmp_path / "run" / "README.md"
    first = place.read_text()
    assert cli.main(["resume", run, "--generations", "3"]) == 0
    assert "3 generations" in place.read_text() != first
    place.write_text("my own words")
    assert cli.main(["resume", run, "--generations", "4"]) == 0
    assert place.read_text() == "my own words"


def test_a_run_of_evolve_has_one_too(tmp_path):
    def fitness(module):
        return -module.weight.square().sum()

    escalade.evolve(nn.Linear(2, 1), fitness, population=4, generations=2, run_dir=tmp_path / "run")
    text = (tmp_path / "run" / "README.md").read_text()
    assert "# Linear: " in text
    same = "with these settings, but `generations={}` and no other limit and no target, and the same module"
    assert f"`escalade.evolve` {same.format(2)}" in text
    callbacks = [lambda view: True]
    escalade.evolve(nn.Linear(2, 1), fitness, population=4, callbacks=callbacks, run_dir=tmp_path / "cut")
    text = (tmp_path / "cut" / "README.md").read_text()
    assert f"`escalade.evolve` {same.format(1)}" in text


def test_an_evaluation_that_is_older_than_the_policy_is_told_as_such(tmp_path, monkeypatch):
    options = {"preset": None, "population": 4, "hidden": [3], "workers": 0, "verbose": False}
    options |= {"generations": 5, "eval_every": 3}  # evaluated in generations 1 and 4
    whole = escalade.train("CartPole-v1", run_dir=tmp_path / "whole", **options)
    monkeypatch.setattr(Loop, "_evaluate_finally", lambda loop: True)  # as where Ctrl-C came
    cut = escalade.train("CartPole-v1", run_dir=tmp_path / "cut", **options)
    assert [run.summary["updates_since_evaluation"] for run in (whole, cut)] == [0, 2]
    texts = [(run.folder.path / "README.md").read_text() for run in (whole, cut)]
    assert "Its unperturbed policy: return " in texts[0]
    assert "Its unperturbed policy, 2 updates before the last, return " in texts[1]
    ends = [evaluations(read_curves(run.folder.path), "generations")[0][-1] for run in (whole, cut)]
    assert ends == [5, 4]


def test_rows_and_summary_round_seconds_alike(tmp_path):
    options = {"preset": None, "population": 4, "hidden": [3], "workers": 0, "verbose": False}
    run = escalade.train("CartPole-v1", generations=3, eval_every=1, run_dir=tmp_path / "run", **options)
    curves = read_curves(run.folder.path)
    assert curves.progress["seconds"][-1] <= run.summary["seconds"]
    _, values = evaluations(curves, "seconds")
    assert values[-1] == pytest.approx(run.summary["eval_return_mean"])
