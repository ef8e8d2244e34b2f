"""A command on its own pseudo terminal: its output, and typed input."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.commands import DEADLINE, ROOT


class Terminal:
    """A pseudo terminal and the command that it controls."""

    def __init__(self, *arguments: Any, cwd: Path, columns: int = 100) -> None:
        self.shown = ""
        self._ours, self._theirs = pty.openpty()
        self._size(columns)
        variables = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            variables.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "escalade", *map(str, arguments)],
            cwd=cwd,
            env=variables,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one thread starts it
        )

    def type(self, text: str) -> None:
        """Type as on a keyboard: ``\\x03`` is Ctrl-C."""
        os.write(self._ours, text.encode())

    def resize(self, columns: int) -> None:
        """Set the width of the window."""
        self._size(columns)

    def _size(self, columns: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))

    def until(self, condition: Callable[[], Any]) -> None:
        """Read the output until the condition is true."""
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, f"timed out: {self.shown}"
            self._read(0.2)

    def wait(self) -> int:
        """Read until the command ends. Return its exit code."""
        self.until(lambda: self.process.poll() is not None)
        while self._read(0.05):
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        self.shown += os.read(self._ours, 65536).decode(errors="replace")
        return True

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(timeout=5)
        os.close(self._ours)
        os.close(self._theirs)


@contextmanager
def terminal(*arguments: Any, cwd: Path, columns: int = 100) -> Iterator[Terminal]:
    """Run a command on a terminal, and kill it at the end of the block."""
    started = Terminal(*arguments, cwd=cwd, columns=columns)
    try:
        yield started
    finally:
        started.end()
