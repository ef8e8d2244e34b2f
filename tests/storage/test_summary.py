"""Damaged text in a run folder: a summary counts as none, a table is refused in one line."""

import shutil

import pytest

import escalade
from escalade.cli import main as cli
from escalade.storage.run_folder import RunFolder

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


@pytest.mark.parametrize("text", ["", '{"solved": tr', "[1]"])
def test_a_damaged_summary_counts_as_none(text, run, capsys):
    assert run.read_summary()["stop_reason"] == "generations"
    run.summary.write_text(text)
    assert run.read_summary() == {}
    assert cli.main(["watch", "--once", "run"]) == 1
    assert "it left no summary; go on with: escalade resume" in capsys.readouterr().out
    assert cli.main(["compare", "run"]) == 0


def test_a_damaged_progress_is_refused_before_anything_is_trained(run, capsys):
    heading, first, *others = run.progress.read_text().splitlines()
    cells = dict(zip(heading.split(","), first.split(","), strict=True)) | {"return_mean": "x"}
    run.progress.write_text("\n".join([heading, ",".join(cells.values()), *others]) + "\n")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert cli.main(["resume", "run", "--generations", "3"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "run/progress.csv is not a progress.csv that Escalade wrote" in said
    assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    for look in LOOKS.values():
        assert cli.main([*look]) == 2
        assert capsys.readouterr().err.count("\n") == 1
