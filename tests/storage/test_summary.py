"""Damaged text files of a run folder: a summary is ignored, a table raises one line."""

import json
import math
import shutil

import pytest

import escalade
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


def edited(**values):
    def edit(text):
        known = json.loads(text) | values
        return json.dumps({name: value for name, value in known.items() if value != "missing"})

    return edit


DAMAGES = {
    "nothing": lambda text: "",
    "half": lambda text: '{"solved": tr',
    "a list": lambda text: "[1]",
    "text for a count": edited(eval_episodes="nan"),
    "no time": edited(seconds="missing"),
    "no number": edited(seconds=math.nan),
    "a long time": edited(seconds=1e308),
    "a large number": edited(env_steps=10**400),
    "a list for a number": edited(eval_return_std=[1.0]),
    "a mean alone": edited(eval_return_std="missing"),
    "neither": edited(eval_return_mean="missing", eval_return_std="missing"),
    "no steps": edited(env_steps="missing"),
    "no target": edited(target_return="missing"),
    "a truth for a number": edited(eval_return_mean=True),
    "no count": edited(generations=None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_summary_is_ignored(damage, run, capsys):
    assert run.read_summary()["stop_reason"] == "generations"
    run.summary.write_text(DAMAGES[damage](run.summary.read_text()))
    assert run.read_summary() == {}
    assert cli.main(["watch", "--once", "run"]) == 1
    assert "without writing a summary; resume with: escalade resume" in capsys.readouterr().out
    assert cli.main(["compare", "run"]) == 0


@pytest.mark.parametrize(
    ("column", "cell"),
    [("return_mean", "x"), ("seconds", "1e308"), ("nonfinite", ""), ("episodes", ""), ("eval_steps", "inf")],
)
def test_a_damaged_progress_file_raises_before_training(column, cell, run, capsys):
    heading, first, *others = run.progress.read_text().splitlines()
    cells = dict(zip(heading.split(","), first.split(","), strict=True)) | {column: cell}
    run.progress.write_text("\n".join([heading, ",".join(cells.values()), *others]) + "\n")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert cli.main(["resume", "run", "--generations", "3"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "run/progress.csv is not a progress.csv of Escalade" in said
    assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    for look in LOOKS.values():
        assert cli.main([*look]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("seconds", [1e308, math.inf, math.nan, "1"])
def test_a_checkpoint_with_impossible_seconds_is_skipped(seconds, run):
    path = run.checkpoints.path(2)
    tensors, state = read(path)
    state["progress"]["updates"]["seconds"] = seconds
    write(path, tensors, state)
    assert escalade.resume(run, generations=3, verbose=False).summary["seconds"] < 1e6
