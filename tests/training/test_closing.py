"""A run's last lines: how it ended, and how to go on."""

from pathlib import Path

import pytest
import torch

import escalade
from escalade.training.closing import closing_lines

ENDED = {"env": "E", "eval_return_mean": 9.5, "eval_return_std": 0.5, "eval_episodes": 8, "env_steps": 1200}
ENDED |= {"seconds": 2.0, "target_return": 9.0, "stop_reason": "solved"}
SMALL = {
    "preset": None,
    "policy": "linear",
    "population": 4,
    "workers": 0,
    "eval_episodes": 1,
    "max_episode_steps": 9,
}


@pytest.mark.parametrize(
    ("changes", "again", "reason"),
    [
        ({}, False, "solved: E reached its target of 9.0"),
        (
            {},
            True,
            "already solved: E reached its target of 9.0; set a harder `target_return` to continue",
        ),
        ({"stop_reason": "env_steps"}, False, "stopped: `env_steps` was reached"),
        (
            {"stop_reason": "seconds"},
            True,
            "stopped: `seconds` was reached before; set a higher one to continue",
        ),
        ({"stop_reason": "callback"}, False, "stopped by a callback"),
        ({"stop_reason": "interrupted"}, False, "interrupted; resume with: escalade resume 'a run'"),
    ],
)
def test_they_give_the_result_the_reason_and_the_folder(changes, again, reason):
    lines = [*closing_lines(ENDED | changes, Path("a run"), again=again)]
    assert lines == ["return 9.5 ± 0.5 over 8 episodes, 1,200 steps, 2.0 s", reason, "run folder: a run"]


def test_the_library_prints_them_too(tmp_path, capsys):
    run = escalade.train("CartPole-v1", generations=2, run_dir=tmp_path / "run", **SMALL)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == [*closing_lines(run.summary, tmp_path / "run")]
    assert lines[-2] == "stopped: `generations` was reached"
    module = torch.nn.Linear(1, 1)
    escalade.evolve(module, lambda m: 0.0, population=4, generations=1, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("return 0 ± 0 over 1 call, ")
    assert lines[-1] == "stopped: `generations` was reached"  # it has no folder
    escalade.evolve(module, lambda m: 0.0, population=4, generations=1)
    assert capsys.readouterr().out == ""


def test_a_solved_run_that_is_resumed_says_so_and_notes_nothing(tmp_path, capsys):
    run = escalade.train("CartPole-v1", target_return=1.0, run_dir=tmp_path / "run", verbose=False, **SMALL)
    again = escalade.resume(run)
    out = capsys.readouterr().out
    assert "already solved: CartPole-v1 reached its target of 1.0; set a harder `target_return`" in out
    assert "resuming" not in out
    assert not run.folder.notes.exists()
    assert again.summary["params_sha256"] == run.summary["params_sha256"]
    on = escalade.resume(run, target_return=500.0, generations=3, verbose=False)
    assert (on.summary["solved"], on.summary["generations"]) == (False, 3)
    escalade.resume(run)
    assert "stopped: `generations` was reached before; set a higher one" in capsys.readouterr().out
