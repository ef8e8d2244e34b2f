"""A terminal that a panel is drawn on: what is changed of it for that, and how it is put back."""

from __future__ import annotations

import os
import sys
import termios
from contextlib import suppress
from typing import TextIO

_SHOW_CURSOR = b"\x1b[?25h\n"
_LOCAL_MODES = 3  # place of the local modes among what tcgetattr gives

_drawn_on: list[QuietTerminal] = []


class QuietTerminal:
    """Keeps a terminal from writing ``^C`` into what is drawn on it, until :meth:`end`."""

    def __init__(self, stream: TextIO) -> None:
        self._output = _descriptor(stream)
        self._input = _descriptor(sys.stdin)
        self._before: int | None = None
        if _in_foreground(self._input):
            with suppress(termios.error):
                modes = termios.tcgetattr(self._input)
                self._before = modes[_LOCAL_MODES]
                self._set(self._before & ~termios.ECHOCTL)
        _drawn_on.append(self)

    def end(self) -> None:
        """Put the terminal's modes back."""
        if self in _drawn_on:
            _drawn_on.remove(self)
        before, self._before = self._before, None
        if before is not None and _in_foreground(self._input):
            with suppress(termios.error):
                self._set(before)

    def abandon(self) -> None:
        """Put the terminal back in the middle of a drawing: the process ends now."""
        if self._output >= 0:
            with suppress(OSError):
                os.write(self._output, _SHOW_CURSOR)
        self.end()

    def _set(self, local: int) -> None:
        modes = termios.tcgetattr(self._input)
        modes[_LOCAL_MODES] = local
        termios.tcsetattr(self._input, termios.TCSANOW, modes)


def abandon_terminals() -> None:
    """Put back every terminal that is drawn on: the process ends now."""
    for terminal in list(_drawn_on):
        terminal.abandon()


def _descriptor(stream: TextIO | None) -> int:
    """The stream's file descriptor; -1 where it has none."""
    try:
        return -1 if stream is None else stream.fileno()
    except (OSError, ValueError):  # a stream of a test or of a notebook; a closed one
        return -1


def _in_foreground(descriptor: int) -> bool:
    """Tell whether the terminal is there and is ours: who changes it from the background is stopped."""
    try:
        return descriptor >= 0 and os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
