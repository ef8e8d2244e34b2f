"""Real processes that use the same run folder: one holds it, the others report the holder."""

import signal
import socket
from concurrent.futures import ThreadPoolExecutor

from tests.commands import command, running

from escalade.cli.main import main

LONG = ["CartPole-v1", "--preset", "none", "--population", "4", "--hidden", "4", "--workers", "0"]
LONG += ["--max-episode-steps", "20", "--eval-every", "50", "--eval-episodes", "2"]
SHORT = [*LONG, "--generations", "2"]


def refused(code, message, *fragments):
    lines = message.splitlines()
    assert (code, len(lines)) == (2, 1), message
    assert all(fragment in lines[0] for fragment in fragments), lines[0]


def test_a_running_run_cannot_be_resumed_by_a_second_process(tmp_path, capsys):
    run = tmp_path / "run"

    def here(*arguments):
        return main([str(argument) for argument in arguments]), capsys.readouterr().err

    with running("train", *LONG, "--generations", "1000000", "--run-dir", run, cwd=tmp_path) as process:
        process.until(lambda: any(run.glob("checkpoints/*.safetensors")))
        who = f"in use by process {process.process.pid} on {socket.gethostname()}"
        refused(*here("resume", run), str(run), who, "wait until it exits")
        refused(*here("train", *SHORT, "--run-dir", run), "holds a run already")
        assert here("plot", run, "--output", tmp_path / "c.png") == (0, "")
        process.signal(signal.SIGKILL)
        process.wait()
    # The kernel released the lock: nothing needs to be removed by hand.
    assert main(["resume", str(run), "--generations", "1"]) == 0


def test_only_one_of_two_runs_started_in_the_same_folder_runs(tmp_path):
    run = tmp_path / "run"

    def train(_):
        return command("train", *SHORT, "--run-dir", run, cwd=tmp_path)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(train, range(2)))
    assert sorted(result.returncode for result in results) == [0, 2]
    for result in results:
        if result.returncode == 2:
            refused(result.returncode, result.stderr, str(run))
