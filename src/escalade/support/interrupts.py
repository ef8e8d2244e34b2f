"""Ctrl-C: the first asks for an orderly end, the second ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, ClassVar


class Interrupts:
    """While entered, SIGINT and SIGTERM set ``requested`` instead of raising anywhere.

    Inside :meth:`allowed` they raise KeyboardInterrupt at once: that is where nothing is half
    done. A second signal calls ``leave``, where the command line has set it to end the process, and
    raises wherever it arrives otherwise.
    """

    leave: ClassVar[Callable[[], None] | None] = None

    def __init__(self) -> None:
        self.requested = False
        self._allowed = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Where a first signal may raise KeyboardInterrupt."""
        self._allowed = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._allowed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again, self.requested = self.requested, True
        if again and Interrupts.leave is not None:
            Interrupts.leave()
        if again or self._allowed:
            self._allowed = False
            raise KeyboardInterrupt
