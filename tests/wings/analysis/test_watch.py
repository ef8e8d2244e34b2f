"""``escalade watch`` follows a run of a different process through its folder alone."""

import signal

import pytest
import torch
from tests.commands import running

import escalade
from escalade.cli import main as cli
from escalade.storage.lock import FolderLock

SMALL = "--preset none --population 8 --hidden 4 --eval-every 2 --eval-episodes 2 --backend gymnasium"
SMALL = [*SMALL.split(), "--workers", "0", "--max-episode-steps", "9999999"]


def halting(tmp_path):
    """Return arguments of a run whose first generation lasts until the file ``marker`` is removed."""
    marker = tmp_path / "marker"
    marker.touch()
    arguments = ["train", "tests.environments:Halts-v0", "--env-kwargs", f'{{"marker":"{marker}"}}', *SMALL]
    return [*arguments, "--run-dir", tmp_path / "run"], marker


def held(run):
    return (run / "config.toml").exists() and FolderLock(run).status()[0] == "held"


def once(run, capsys):
    code = cli.main(["watch", str(run), "--once"])
    return code, capsys.readouterr().out


def test_watch_follows_a_run_from_before_its_first_row_to_its_end(tmp_path, capsys):
    arguments, marker = halting(tmp_path)
    run = tmp_path / "run"
    with running(*arguments, "--generations", 6, cwd=tmp_path) as trained:
        trained.until(lambda: held(run))
        code, output = once(run, capsys)
        assert code == 0
        state, title = output.splitlines()
        assert title == "tests.environments:Halts-v0: ars, population 8"
        assert state.startswith(f"running, in its first generation: process {trained.process.pid} on ")
        with running("watch", run, cwd=tmp_path) as watching:
            watching.until(lambda: "in its first generation" in watching.out)
            marker.unlink()
            assert trained.wait() == 0
            assert watching.wait() == 0
            followed = watching.out
        closing = trained.out.splitlines()[-3:]
    assert "generation 6  " in followed
    assert followed.splitlines()[-3:] == closing  # the same last line as the run prints
    code, output = once(run, capsys)
    assert code == 0
    assert output.splitlines()[-3:] == closing
    assert "generation 6  " in output
    assert " left" not in output


def test_watch_reports_a_killed_run(tmp_path):
    arguments, _ = halting(tmp_path)
    run = tmp_path / "run"
    with running(*arguments, cwd=tmp_path) as trained:
        trained.until(lambda: held(run))
        with running("watch", run, cwd=tmp_path) as watching:
            watching.until(lambda: "in its first generation" in watching.out)
            trained.signal(signal.SIGKILL)
            assert watching.wait() == 1
            assert f"was killed (process {trained.process.pid} on " in watching.out
            assert f"escalade resume {run}" in watching.out
            assert watching.err == ""


def test_watch_reports_a_failed_run(tmp_path, capsys):
    run = tmp_path / "run"

    def fail(view):
        raise RuntimeError

    with pytest.raises(RuntimeError):  # not at the start, because that would leave no folder
        escalade.train(
            "CartPole-v1", workers=0, preset=None, verbose=False, run_dir=run, population=4, callbacks=[fail]
        )
    code, output = once(run, capsys)
    assert code == 1
    assert "the run failed without writing a summary; resume with: escalade resume" in output


def test_a_folder_that_is_not_a_run_is_reported_in_one_line(tmp_path, capsys):
    assert cli.main(["watch", str(tmp_path)]) == 2
    assert capsys.readouterr() == ("", f"escalade: {tmp_path} is not a run folder: it has no config.toml\n")


def test_watch_follows_a_minimizing_run_of_evolve(tmp_path, capsys):
    def error(module):
        return float(module.weight.abs().sum())

    torch.manual_seed(0)
    options = {"population": 4, "generations": 2, "direction": "minimize", "run_dir": tmp_path / "run"}
    escalade.evolve(torch.nn.Linear(2, 1, bias=False), error, **options)
    code, output = once(tmp_path / "run", capsys)
    assert code == 0
    assert output.startswith("Linear: openai-es, population 4\ngeneration 2")
    assert "stopped: --generations was reached" in output
    assert "min " in output
    assert "max " not in output
    (tmp_path / "run" / "summary.json").unlink()
    code, output = once(tmp_path / "run", capsys)
    assert code == 1
    assert "resume with: the same evolve with resume=True" in output
