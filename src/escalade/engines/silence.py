"""Workers that give no sign of life: whom a run is waiting for, and for how long it will."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from escalade.engines.base import SHORTEST_TIMEOUT, describe
from escalade.engines.process import Worker
from escalade.errors import EnvironmentFailure

_NOTE_FACTOR = 4.0  # between the silence after which a note is made and that of the next
# The most of the time between two looks that counts as silence: this process may have been stopped itself.
_LONGEST_LOOK = SHORTEST_TIMEOUT / 2
_NAMED = 3  # items that a note names


class Silence:
    """Looks after workers that have items, or are being started, and say nothing.

    After ``timeout`` seconds a worker is given up. Its items become suspects, to be run again one
    at a time; one that is then silent for as long is the user's to look into. Items of workers that
    die again and again become suspects too, so that it is known which one it was.
    """

    def __init__(self, timeout: float | None) -> None:
        self.suspects: set[int] = set()
        self._timeout = math.inf if timeout is None else timeout
        self._looked = 0.0

    def begin(self) -> None:
        """A job begins."""
        self.suspects = set()
        self._looked = time.monotonic()

    def look(self, workers: Sequence[Worker], job: Any, note: Callable[[str], None]) -> list[Worker]:
        """The workers to give up now.

        Raises:
            EnvironmentFailure: an item was silent for too long again.
        """
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, _LONGEST_LOOK), now
        lost = []
        for worker in workers:
            if worker.info and not worker.items:
                worker.heard()
                continue
            worker.silent_seconds += passed
            if worker.info and worker.silent_seconds >= self._timeout:
                self._give_up(worker, job, note)
                lost.append(worker)
            elif worker.silent_seconds >= worker.next_note:
                worker.next_note *= _NOTE_FACTOR
                hint = ": `step_timeout` replaces such workers" if self._timeout == math.inf else ""
                note(f"{_state_of(worker, job)}; it is waited for{hint}")
        return lost

    def _give_up(self, worker: Worker, job: Any, note: Callable[[str], None]) -> None:
        again = worker.items & self.suspects
        if again:
            raise EnvironmentFailure(
                f"{describe(job, min(again))} gave no sign of life for {self._timeout:g} s, twice: "
                "look into what it runs, or raise `step_timeout`"
            )
        self.suspects |= worker.items
        note(f"{_state_of(worker, job)}; it is replaced, and they are run again")


def _state_of(worker: Worker, job: Any) -> str:
    if not worker.info:
        return f"worker process {worker.pid} has been starting for {worker.silent_seconds:.0f} s"
    named = [describe(job, item) for item in sorted(worker.items)[:_NAMED]]
    more = [f"{len(worker.items) - _NAMED} more"] if len(worker.items) > _NAMED else []
    return (
        f"worker process {worker.pid} gave no sign of life for {worker.silent_seconds:.0f} s, "
        f"with {', '.join(named + more)}"
    )
