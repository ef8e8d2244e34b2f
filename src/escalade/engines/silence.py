"""Workers that give no sign of life: whom a run is waiting for, and for how long it will."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from escalade.engines.base import SHORTEST_TIMEOUT, describe
from escalade.errors import EnvironmentFailure

if TYPE_CHECKING:
    from escalade.engines.process import Worker

_FIRST_NOTE_SECONDS = 30.0
_NOTE_FACTOR = 4.0  # between the silence after which a note is made and that of the next
# The most of the time between two looks that counts as silence: this process may have been stopped itself.
_LONGEST_LOOK = SHORTEST_TIMEOUT / 2
_NAMED = 3  # items that a note names


class Clock:
    """A clock of a worker's silence, which says when that is to be said."""

    def __init__(self) -> None:
        self.end()

    def end(self) -> None:
        """The worker has given a sign of life, or has nothing to do."""
        self.seconds = 0.0
        self.next_note = _FIRST_NOTE_SECONDS


class Silence:
    """Looks after workers that have items, or are being started, and say nothing.

    After ``timeout`` seconds a worker is given up. Its items become suspects, to be run again one
    at a time; one that is then silent for as long is the user's to look into.
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
            if not worker.items and worker.info:
                worker.silent.end()
                continue
            worker.silent.seconds += passed
            if not worker.info:
                self._note_start(worker, note)
                continue
            if worker.silent.seconds >= self._timeout:
                self._give_up(worker, job, note)
                lost.append(worker)
            elif worker.silent.seconds >= worker.silent.next_note:
                worker.silent.next_note *= _NOTE_FACTOR
                note(
                    f"{_waiting_for(worker, job)}; it is waited for"
                    + (": `step_timeout` replaces such workers" if self._timeout == math.inf else "")
                )
        return lost

    def _note_start(self, worker: Worker, note: Callable[[str], None]) -> None:
        if worker.silent.seconds >= worker.silent.next_note:
            worker.silent.next_note *= _NOTE_FACTOR
            note(
                f"worker process {worker.pid} has been starting for {worker.silent.seconds:.0f} s: it builds "
                "its environments, and is waited for"
            )

    def _give_up(self, worker: Worker, job: Any, note: Callable[[str], None]) -> None:
        again = worker.items & self.suspects
        if again:
            item = min(again)
            raise EnvironmentFailure(
                f"{describe(job, item)} gave no sign of life for {self._timeout:g} s, twice: "
                "look into what it runs, or raise `step_timeout`"
            )
        self.suspects |= worker.items
        note(f"{_waiting_for(worker, job)}; it is replaced, and they are run again")


def _waiting_for(worker: Worker, job: Any) -> str:
    return (
        f"worker process {worker.pid} gave no sign of life for {worker.silent.seconds:.0f} s, "
        f"with {_listed(worker.items, job)}"
    )


def _listed(items: Collection[int], job: Any) -> str:
    named = [describe(job, item) for item in sorted(items)[:_NAMED]]
    more = [f"{len(items) - _NAMED} more"] if len(items) > _NAMED else []
    return ", ".join(named + more)
