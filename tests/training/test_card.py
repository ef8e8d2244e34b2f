"""A run's README.md says what it was, and its command gives the run again."""

import json
import shlex

import pytest
import torch
from torch import nn

import escalade
from escalade.cli import main as cli
from escalade.storage.run_folder import RunFolder
from escalade.training.card import card
from escalade.training.limits import Limits

TINY = ["--preset", "none", "--population", "4", "--hidden", "3", "--workers", "0", "--generations", "2"]


def test_the_command_of_the_card_gives_the_run_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "CartPole-v1", *TINY, "--target-return", "499", "--run-dir", "first"]) == 0
    text = (tmp_path / "first" / "README.md").read_text()
    assert "# CartPole-v1" in text
    assert "The target of 499 was not met." in text
    assert "2 generations" in text
    assert 'strategy = "ars"' in text
    assert f"torch {torch.__version__}" in text
    (line,) = [line.strip() for line in text.splitlines() if "escalade train" in line]
    assert cli.main(shlex.split(line)[1:]) == 0
    again = (tmp_path / "first-again" / "README.md").read_text()
    (digest,) = [line for line in text.splitlines() if line.startswith("SHA-256")]
    assert digest in again


def test_a_module_of_ones_own_is_not_had_again_by_a_command(tmp_path):
    options = {"preset": None, "population": 4, "workers": 0, "generations": 1, "verbose": False}
    run = escalade.train("CartPole-v1", network=nn.Linear(4, 2), run_dir=tmp_path / "run", **options)
    text = (tmp_path / "run" / "README.md").read_text()
    assert "with these settings, `preset=None` and the same `network` gives it again." in text
    assert "escalade train" not in text
    assert run.summary["network"] == "own"


def test_a_run_in_the_current_folder_is_named_in_its_commands(tmp_path, monkeypatch, capsys):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert cli.main(["train", "CartPole-v1", *TINY, "--run-dir", "."]) == 0
    text = (tmp_path / "here" / "README.md").read_text()
    assert "--config here/config.toml" in text
    assert "escalade resume here\n" in text


@pytest.mark.parametrize(
    "flags", [["--preset", "none", "--hidden", "3"], ["--lr", "none", "--target-return", "none"]]
)
def test_a_runs_config_gives_the_run_again_where_a_preset_would_fill_in(flags, tmp_path, monkeypatch, capsys):
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


def test_a_run_that_the_clock_ended_is_given_again_by_counting_its_generations(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        Limits, "reached", lambda limits, progress: "seconds" if progress.generation == 3 else None
    )
    assert cli.main(["train", "CartPole-v1", *TINY[:-2], "--seconds", "3600", "--run-dir", "first"]) == 0
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    text = (tmp_path / "first" / "README.md").read_text()
    assert "It ended by seconds: to have the same bits, its generations are counted." in text
    (line,) = [line.strip() for line in text.splitlines() if "escalade train" in line]
    assert cli.main(shlex.split(line)[1:]) == 0
    again = (tmp_path / "first-again" / "README.md").read_text()
    (digest,) = [line for line in text.splitlines() if line.startswith("SHA-256")]
    assert digest in again
    assert "to have the same bits" not in again


def test_a_run_that_ended_in_its_first_generation_promises_nothing(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_config("seconds = 1.0\n")
    summary = {"stop_reason": "seconds", "generations": 0, "versions": {}, "eval_return_mean": None}
    summary |= {"target_return": None, "env_steps": 0, "seconds": 3.0, "seed": 0, "params_sha256": "x"}
    assert "bits" not in card(folder, "CartPole-v1", summary | {"eval_return_std": None})


def test_only_a_card_of_ours_is_written_again(tmp_path, capsys):
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
    assert "`escalade.evolve` with these settings, and" in text
    callbacks = [lambda view: True]
    escalade.evolve(nn.Linear(2, 1), fitness, population=4, callbacks=callbacks, run_dir=tmp_path / "cut")
    text = (tmp_path / "cut" / "README.md").read_text()
    assert "with these settings and `generations=1`, and the same module" in text


def test_what_is_to_be_copied_is_quoted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train = ["train", "CartPole-v1", *TINY, "--run-dir", "my run; $(no)"]
    assert cli.main(train) == 0
    text = (tmp_path / "my run; $(no)" / "README.md").read_text()
    lines = [line.strip() for line in text.splitlines() if line.startswith("    escalade ")]
    assert len(lines) == 3
    for line in lines[:2]:
        assert cli.main(shlex.split(line)[1:]) == 0
    capsys.readouterr()
    assert cli.main(train) == 2
    assert "'escalade resume 'my run; $(no)''" in capsys.readouterr().err
