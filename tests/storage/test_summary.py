"""Damaged numbers in a run folder: a summary counts as none, other files are refused in one line."""

import json
import math
import shutil

import pytest

import escalade
from escalade import InputError
from escalade.cli import main as cli
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import read, write

RUN = {"preset": None, "population": 4, "hidden": (3,), "generations": 2, "workers": 0, "verbose": False}
RUN |= {"backend": "gymnasium", "max_episode_steps": 5, "eval_episodes": 1}
LOOKS = {
    "watch": ("watch", "--once", "run"),
    "report": ("report", "run", "--output", "r.html"),
    "plot": ("plot", "run", "--output", "p.svg"),
}


@pytest.fixture(scope="module")
def made(museum):
    return museum.show("numbers to damage", lambda to: escalade.train("CartPole-v1", run_dir=to, **RUN))


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def edit_summary(run, **values):
    known = json.loads(run.summary.read_text()) | values
    run.summary.write_text(json.dumps({name: value for name, value in known.items() if value != "missing"}))


DAMAGED = [
    {"eval_episodes": "nan"},
    {"eval_episodes": 1.5},
    {"eval_episodes": -1},
    {"seconds": "missing"},
    {"seconds": 10**400},
    {"seconds": 1e308},
    {"seconds": math.nan},
    {"eval_return_mean": True},
    {"eval_return_std": [1.0]},
    {"env_steps": 10**400},
    {"generations": None},
    {"best_generation": "../../elsewhere"},
    {"parameters": {}},
    {"stop_reason": 3},
    {"solved": "no"},
    {"versions": {"python": 3}},
]


@pytest.mark.parametrize("values", DAMAGED, ids=str)
def test_a_summary_with_a_damaged_entry_counts_as_none(values, run, capsys):
    assert run.read_summary()["stop_reason"] == "generations"
    edit_summary(run, **values)
    assert run.read_summary() == {}
    assert cli.main(["watch", "--once", "run"]) == 1
    assert "it left no summary; go on with: escalade resume" in capsys.readouterr().out
    assert cli.main(["compare", "run"]) == 0


@pytest.mark.parametrize("seconds", [1e308, math.inf, -1.0, math.nan, "1", None])
def test_a_checkpoint_with_impossible_seconds_is_passed_over(seconds, run):
    path = run.checkpoints.path(2)
    tensors, state = read(path)
    state["progress"]["updates"]["seconds"] = seconds
    write(path, tensors, state)
    with pytest.raises(InputError, match=r"000002.safetensors cannot be used: .*seconds"):
        escalade.evaluate(run, episodes=1)


def test_a_checkpoint_without_a_centre_has_no_size(run, capsys):
    path = run.checkpoints.path(2)
    tensors, state = read(path)
    write(
        path,
        {name: value for name, value in tensors.items() if "center" not in name},
        state | {"own_network": True},
    )
    run.summary.unlink()
    assert cli.main(["compare", "run"]) == 0


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("return_mean", "x"),
        ("generation", "1.5"),
        ("seconds", "1e308"),
        ("seconds", "-1"),
        ("nonfinite", ""),
        ("env_steps", "inf"),
    ],
)
def test_a_damaged_progress_is_refused_before_anything_is_trained(column, cell, run, capsys):
    heading, first, *others = run.progress.read_text().splitlines()
    cells = dict(zip(heading.split(","), first.split(","), strict=True)) | {column: cell}
    run.progress.write_text("\n".join([heading, ",".join(cells.values()), *others]) + "\n")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert cli.main(["resume", "run", "--generations", "3"]) == (2 if column != "generation" else 0)
    said = capsys.readouterr().err
    if column != "generation":  # else the line counts as cut short, and is written again
        assert said.count("\n") == 1
        assert "run/progress.csv is not a progress.csv that Escalade wrote" in said
        assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
        for look in LOOKS.values():
            assert cli.main([*look]) == 2
            assert capsys.readouterr().err.count("\n") == 1
