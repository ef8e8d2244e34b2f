"""The real command, run as a user runs it, and what to look for once it is gone."""

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

# A sitecustomize that hides packages: importing them fails, and looking for them finds nothing.
_HIDE = """
import importlib.machinery as machinery
hidden = {hidden!r}
found = machinery.PathFinder.find_spec
machinery.PathFinder.find_spec = staticmethod(
    lambda name, path=None, target=None:
        None if name.partition(".")[0] in hidden else found(name, path, target)
)
"""

# A sitecustomize for a disk that fills up: the n-th synced file and all after it find no room.
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
    """Environment variables of a command that has not got ``packages``."""
    return _customised(folder, _HIDE.format(hidden=set(packages)))


def filling(folder: Path, left: int) -> dict[str, str]:
    """Environment variables of a command whose disk has room for ``left`` synced files."""
    return _customised(folder, _FULL.format(left=left))


def _customised(folder: Path, text: str) -> dict[str, str]:
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
    """Run ``escalade`` with these arguments to its end."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = _start(arguments, cwd, variables, **pipes)
    try:
        out, err = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class Running:
    """A command in a session of its own, so that signals to its group reach nobody else."""

    def __init__(self, *arguments: Any, cwd: Path) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        # Short, for the names of sockets go there; empty again when all is well.
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
        """Wait until something is so; fail when the command ends first."""
        wait_until(lambda: condition() or self.process.poll() is not None)
        assert condition(), f"ended with {self.process.returncode}: {self.out}{self.err}"

    def signal(self, number: signal.Signals, group: bool = False) -> None:
        """Send a signal, as a terminal does (to the whole group) or as ``kill`` does."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def insist(self, number: signal.Signals) -> int:
        """Send a signal once a second until the command ends, as someone impatient does; its exit code.

        Signals that come all at once may be taken by a thread of BLAS, and a sleep in the main thread
        goes on. The next one ends it.
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
        """Names in the command's temporary folder, but for the cache that torch keeps for its user."""
        return [name for name in os.listdir(self.temporary) if not name.startswith("torchinductor_")]

    def family(self) -> list[psutil.Process]:
        """Every process that this command started, and itself: they inherit a variable that marks them."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(_MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def workers(self) -> list[psutil.Process]:
        """The leaves of the family: processes forked from the fork server."""
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
    """A command that is gone, with all it started, when the block ends."""
    started = Running(*arguments, cwd=cwd)
    try:
        yield started
    finally:
        started.end()


def wait_until(condition: Callable[[], Any], deadline: float = DEADLINE) -> None:
    """Poll until something is so; seldom enough to leave the cores to what is waited for."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def parsers() -> dict[str, Parser]:
    """The parser of every command, by name."""
    action = next(action for action in make_parser()._actions if action.dest == "==SUPPRESS==")
    return dict(action.choices)


def summary(run: Path) -> dict[str, Any]:
    return json.loads((run / "summary.json").read_text())


def bits(run: Path) -> str:
    """What must be the same: the digest of the final centre and normaliser."""
    return summary(run)["params_sha256"]


def temporary_files(run: Path) -> list[Path]:
    return [path for path in run.rglob("*") if ".tmp" in path.name]
