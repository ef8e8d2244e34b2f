"""The last lines of a run: the result, the stop reason, and how to continue."""

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
def test_closing_lines_show_result_reason_and_folder(changes, again, reason):
    lines = [*closing_lines(ENDED | changes, Path("a run"), again=again)]
    assert lines == ["return 9.5 ± 0.5 over 8 episodes, 1,200 steps, 2.0 s", reason, "run folder: a run"]


def test_library_calls_print_the_closing_lines(tmp_path, capsys):
    run = escalade.train("CartPole-v1", generations=2, run_dir=tmp_path / "run", **SMALL)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == [*closing_lines(run.summary, tmp_path / "run")]
    assert lines[-2] == "stopped: `generations` was reached"
    module = torch.nn.Linear(1, 1)
    escalade.evolve(module, lambda m: 0.0, population=4, generations=1, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("return 0 ± 0 over 1 call, ")
    assert lines[-1] == "stopped: `generations` was reached"  # no run folder
    escalade.evolve(module, lambda m: 0.0, population=4, generations=1)
    assert capsys.readouterr().out == ""


def test_resumed_solved_run_prints_that_it_is_solved_without_notes(tmp_path, capsys):
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
