"""Signals and damaged checkpoints with the real command: saved files, exit codes, and no leftovers.

Leftovers are processes, shared memory and temporary files.
"""

import os
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.commands import final_digest, running, summary, temporary_files, wait_until

import escalade
from escalade.cli.main import main
from escalade.storage.checkpoints import Checkpoints
from escalade.storage.tensors import read
from escalade.support import interrupts
from escalade.support.interrupts import Interrupts

SHM = Path("/dev/shm")
SMALL = ["--preset", "none", "--population", "16", "--hidden", "8", "--seed", "3", "--eval-every", "50"]
SMALL += ["--eval-episodes", "2", "--max-episode-steps", "30"]
LIBRARY = {"preset": None, "population": 16, "hidden": [8], "seed": 3, "eval_every": 50, "eval_episodes": 2}
LIBRARY |= {"max_episode_steps": 30, "verbose": False, "workers": 0}


def shared():
    return set(os.listdir(SHM)) if SHM.is_dir() else set()


def rows(run):
    path = run / "progress.csv"
    return len(path.read_bytes().splitlines()) - 1 if path.exists() else -1


def left_clean(process, run, before):
    wait_until(lambda: process.family() == [])
    assert temporary_files(run) == []
    assert process.left_in_temporary() == []
    assert shared() <= before
    assert "Traceback" not in process.err + process.out
    assert process.err == ""


@pytest.mark.parametrize(
    ("number", "workers", "group"),
    [
        (signal.SIGINT, 2, True),
        (signal.SIGTERM, 2, False),
        (signal.SIGHUP, 0, True),
    ],
    ids=["ctrl-c", "kill", "hang-up"],
)
def test_an_interrupted_run_saves_and_resumes_identically(number, workers, group, tmp_path):
    before, run = shared(), tmp_path / "run"
    with running(
        "train", "CartPole-v1", *SMALL, "--workers", workers, "--run-dir", run, cwd=tmp_path
    ) as process:
        process.until(lambda: rows(run) >= 3)
        process.signal(number, group)
        assert process.wait() == 130
        left_clean(process, run, before)
        assert f"escalade resume {run}" in process.out
    stopped = summary(run)
    done = stopped["generations"]
    assert stopped["stop_reason"] == "interrupted"
    assert rows(run) == done
    assert (run / "checkpoints" / f"generation-{done:06d}.safetensors").is_file()
    resumed = escalade.resume(run, generations=done + 3, workers=0, verbose=False).summary
    whole = escalade.train(
        "CartPole-v1", generations=done + 3, run_dir=str(tmp_path / "whole"), **LIBRARY
    ).summary
    assert resumed["params_sha256"] == whole["params_sha256"]


@pytest.fixture
def blocked(tmp_path):
    """Start runs whose first step blocks, and wait until it blocks."""
    marker = tmp_path / "inside"
    kwargs = f'{{"marker":"{marker}"}}'

    @contextmanager
    def start(workers):
        before, run = shared(), tmp_path / "run"
        arguments = ["train", "tests.environments:Blocks-v0", "--env-kwargs", kwargs, *SMALL]
        with running(*arguments, "--workers", workers, "--run-dir", run, cwd=tmp_path) as process:
            process.until(marker.exists)
            yield process, run
            left_clean(process, run, before)

    return start


def test_an_interrupt_works_while_a_step_blocks(blocked):
    with blocked(workers=1) as (process, run):
        process.signal(signal.SIGINT, group=True)
        assert process.wait() == 130
    assert summary(run)["generations"] == 0


@pytest.mark.parametrize(
    "workers",
    [
        0,
        pytest.param(2, marks=pytest.mark.slow("src/escalade/engines", "src/escalade/support/interrupts.py")),
    ],
)
def test_a_second_interrupt_ends_at_once(workers, blocked):
    with blocked(workers) as (process, run):
        process.signal(signal.SIGINT, group=True)
        process.signal(signal.SIGTERM)
        assert process.insist(signal.SIGINT) == 130
    latest = Checkpoints(run / "checkpoints").load_latest(tuple).checkpoint
    assert latest[1]["progress"]["generation"] == 0


def test_sigquit_ends_at_once_without_a_summary(blocked):
    with blocked(workers=2) as (process, run):
        process.signal(signal.SIGQUIT, group=True)
        assert process.wait() == 128 + signal.SIGQUIT
    assert not (run / "summary.json").exists()


def test_two_signals_within_half_a_second_count_as_one(monkeypatch):
    """``timeout -s INT`` signals the process and then its group."""
    now = [100.0]
    monkeypatch.setattr(interrupts, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with Interrupts() as asked:
        signal.raise_signal(signal.SIGINT)
        now[0] += 0.4
        signal.raise_signal(signal.SIGINT)
        assert asked.requested
        now[0] += 0.2
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_run_under_nohup_continues_without_its_terminal():
    asked, before = Interrupts(), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with asked:
            signal.raise_signal(signal.SIGHUP)
        assert not asked.requested
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_before_there_is_anything_to_save_exits_silently(tmp_path):
    before = shared()
    with running("train", "CartPole-v1", *SMALL, "--run-dir", "run", cwd=tmp_path) as process:
        # The fork server is running and importing: the most fragile moment of the start.
        process.until(lambda: len(process.family()) >= 3)
        process.signal(signal.SIGINT, group=True)
        assert process.wait() == 130
        left_clean(process, tmp_path, before)


def test_no_process_outlives_a_killed_main_process(tmp_path):
    before, run = shared(), tmp_path / "run"
    with running("train", "CartPole-v1", *SMALL, "--workers", 2, "--run-dir", run, cwd=tmp_path) as process:
        process.until(lambda: rows(run) >= 1)
        assert len(process.workers()) == 2
        process.signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: process.family() == [])
        assert shared() <= before
        assert process.left_in_temporary() == []


def test_no_process_outlives_a_finished_run_and_its_result_equals_the_librarys(tmp_path):
    before, run = shared(), tmp_path / "run"
    arguments = ["train", "CartPole-v1", *SMALL, "--workers", 2, "--generations", 2, "--run-dir", run]
    with running(*arguments, cwd=tmp_path) as process:
        assert process.wait() == 0
        left_clean(process, run, before)
    assert final_digest(run) == final_digest(
        escalade.train("CartPole-v1", generations=2, **LIBRARY).folder.path
    )


@pytest.fixture(scope="module")
def finished(museum):
    options = LIBRARY | {"generations": 4, "snapshot_every": 1}
    return museum.show("a finished run", lambda to: escalade.train("CartPole-v1", run_dir=to, **options))


def truncate(file):
    file.write_bytes(file.read_bytes()[:-100])


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 16
    file.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip, "generation-000004.safetensors is damaged"),
        (Path.unlink, "after generation 3; repeating 1 generation\n"),
    ],
    ids=["flipped", "missing"],
)
def test_a_run_resumes_from_the_checkpoint_before_a_damaged_one(damage, message, finished, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    damage(run / "checkpoints" / "generation-000004.safetensors")
    capsys.readouterr()
    escalade.resume(run, workers=0)
    out = capsys.readouterr().out
    assert message in out
    assert "after generation 3" in out
    assert final_digest(run) == final_digest(finished)
    assert rows(run) == 4
    assert read(run / "checkpoints" / "generation-000004.safetensors")


def test_a_run_with_only_damaged_checkpoints_is_reported(tmp_path, capsys):
    run = tmp_path / "run"
    escalade.train("CartPole-v1", generations=2, run_dir=str(run), **LIBRARY)
    for number, file in enumerate(sorted((run / "checkpoints").iterdir())):
        (flip, truncate)[number % 2](file)
    assert main(["resume", str(run)]) == 2
    message = capsys.readouterr().err
    assert "no checkpoint to resume from" in message
    assert "damaged" in message
    assert len(message.splitlines()) == 1
