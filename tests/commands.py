"""The real command, run like a user runs it, and checks for leftovers after it ends."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from escalade.cli.arguments import Parser
from escalade.cli.main import make_parser

ROOT = Path(__file__).parent.parent
DEADLINE = 180.0
_MARK = "ESCALADE_TEST_MARK"

# A sitecustomize that hides packages: imports fail, and searches find nothing.
_HIDE = """
import importlib.machinery as machinery
hidden = {hidden!r}
found = machinery.PathFinder.find_spec
machinery.PathFinder.find_spec = staticmethod(
    lambda name, path=None, target=None:
        None if name.partition(".")[0] in hidden else found(name, path, target)
)
"""

# A sitecustomize that simulates a full disk: the n-th and all later synced files raise ENOSPC.
_FULL = """
import errno, os
left, fsync = [{left}], os.fsync
def full(fd):
    left[0] -= 1
    if left[0] < 0:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    fsync(fd)
os.fsync = full
"""


def hiding(folder: Path, *packages: str) -> dict[str, str]:
    """Return environment variables that hide ``packages`` from a command."""
    return _customized(folder, _HIDE.format(hidden=set(packages)))


def filling(folder: Path, left: int) -> dict[str, str]:
    """Return environment variables of a command whose disk has room for ``left`` synced files."""
    return _customized(folder, _FULL.format(left=left))


def _customized(folder: Path, text: str) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def _start(arguments: tuple[Any, ...], cwd: Path, variables: dict[str, str] | None, **how: Any) -> Any:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"} | (variables or {})
    environment.pop("PYTHONWARNINGS", None)
    return subprocess.Popen(
        [sys.executable, "-m", "escalade", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        text=True,
        **how,
    )


def command(
    *arguments: Any, cwd: Path, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``escalade`` with these arguments until it ends."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = _start(arguments, cwd, variables, **pipes)
    try:
        out, err = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class Running:
    """A command in its own session, so that signals to its group reach no other process."""

    def __init__(self, *arguments: Any, cwd: Path) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        # Short, because socket paths are limited; empty again at the end.
        self.temporary = Path(tempfile.mkdtemp(prefix="esc"))
        self._out, self._err = cwd / f"{self.mark}.out", cwd / f"{self.mark}.err"
        with self._out.open("w") as out, self._err.open("w") as err:
            variables = {_MARK: self.mark, "TMPDIR": str(self.temporary)}
            self.process = _start(arguments, cwd, variables, stdout=out, stderr=err, start_new_session=True)

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait until the condition is true; fail if the command ends first."""
        wait_until(lambda: condition() or self.process.poll() is not None)
        assert condition(), f"ended with {self.process.returncode}: {self.out}{self.err}"

    def signal(self, number: signal.Signals, group: bool = False) -> None:
        """Send a signal to the process, like ``kill``, or to its group, like a terminal."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def insist(self, number: signal.Signals) -> int:
        """Send a signal once a second until the command ends.

        Return its exit code. A thread of BLAS may receive a signal, so that a sleep in the main thread
        continues. The next one ends it.
        """
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            self.signal(number, group=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(timeout=1)
        return self.wait()

    def wait(self) -> int:
        return self.process.wait(timeout=DEADLINE)

    def left_in_temporary(self) -> list[str]:
        """Return the names in the command's temporary folder, except torch's cache."""
        return [name for name in os.listdir(self.temporary) if not name.startswith("torchinductor_")]

    def family(self) -> list[psutil.Process]:
        """Return this command and every process it started, found by an inherited environment variable."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(_MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def workers(self) -> list[psutil.Process]:
        """Return the processes forked from the fork server."""
        server = {p.pid for p in self.family() if "forkserver" in " ".join(_line(p))}
        return [process for process in self.family() if _parent(process) in server]

    def end(self) -> None:
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        shutil.rmtree(self.temporary)


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _parent(process: psutil.Process) -> int | None:
    try:
        return process.ppid()
    except psutil.Error:
        return None


@contextmanager
def running(*arguments: Any, cwd: Path) -> Iterator[Running]:
    """Run a command, and kill it and its children at the end of the block."""
    started = Running(*arguments, cwd=cwd)
    try:
        yield started
    finally:
        started.end()


def wait_until(condition: Callable[[], Any], deadline: float = DEADLINE) -> None:
    """Poll until the condition is true, rarely enough to leave the cores to other processes."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def parsers() -> dict[str, Parser]:
    """Return the parser of every command by name."""
    action = next(action for action in make_parser()._actions if action.dest == "==SUPPRESS==")
    return dict(action.choices)


def summary(run: Path) -> dict[str, Any]:
    return json.loads((run / "summary.json").read_text())


def final_digest(run: Path) -> str:
    """Return the digest of the final center and normalizer."""
    return summary(run)["params_sha256"]


def temporary_files(run: Path) -> list[Path]:
    return [path for path in run.rglob("*") if ".tmp" in path.name]
