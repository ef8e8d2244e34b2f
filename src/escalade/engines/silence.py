"""Detects workers that send no heartbeat."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from escalade.engines.base import SHORTEST_TIMEOUT, describe
from escalade.engines.process import Worker
from escalade.errors import EnvironmentFailure

_NOTE_FACTOR = 4.0  # ratio of the silence before a note to that before the previous note
# Maximum time between two checks that counts as silence, because this process itself may have been stopped.
_LONGEST_PAUSE = SHORTEST_TIMEOUT / 2
_MOST_NAMED = 3  # items named in a note


class Silence:
    """Watches workers that have items or are starting.

    After ``timeout`` seconds without a heartbeat, a worker is replaced. Its items become suspects, which are
    run again one at a time. A suspect that is silent for as long again raises an error. Items of workers
    that die repeatedly become suspects, too, so that the item that kills them is identified.
    """

    def __init__(self, timeout: float | None) -> None:
        self.suspects: set[int] = set()
        self._timeout = math.inf if timeout is None else timeout
        self._checked = 0.0

    def begin(self) -> None:
        """Start a job."""
        self.suspects = set()
        self._checked = time.monotonic()

    def overdue(self, workers: Sequence[Worker], job: Any, note: Callable[[str], None]) -> list[Worker]:
        """Return the workers to replace now.

        Raises:
            EnvironmentFailure: an item was silent for too long a second time.
        """
        now = time.monotonic()
        passed, self._checked = min(now - self._checked, _LONGEST_PAUSE), now
        lost = []
        for worker in workers:
            if worker.info and not worker.items:
                worker.reset_silence()
                continue
            worker.silent_seconds += passed
            if worker.info and worker.silent_seconds >= self._timeout:
                self._suspect(worker, job, note)
                lost.append(worker)
            elif worker.silent_seconds >= worker.next_note:
                worker.next_note *= _NOTE_FACTOR
                hint = " (`step_timeout` replaces such workers)" if self._timeout == math.inf else ""
                note(f"{_describe_state(worker, job)}; still waiting{hint}")
        return lost

    def _suspect(self, worker: Worker, job: Any, note: Callable[[str], None]) -> None:
        again = worker.items & self.suspects
        if again:
            raise EnvironmentFailure(
                f"{describe(job, min(again))} did not respond for {self._timeout:g} s, twice: "
                "check whether the environment or function hangs, or increase `step_timeout`"
            )
        self.suspects |= worker.items
        note(f"{_describe_state(worker, job)}; replacing it and running its items again")


def _describe_state(worker: Worker, job: Any) -> str:
    if not worker.info:
        return f"worker process {worker.pid} has been starting for {worker.silent_seconds:.0f} s"
    named = [describe(job, item) for item in sorted(worker.items)[:_MOST_NAMED]]
    left = len(worker.items) - _MOST_NAMED
    more = [f"{left} more"] if left > 0 else []
    return (
        f"worker process {worker.pid} did not respond for {worker.silent_seconds:.0f} s, "
        f"running {', '.join(named + more)}"
    )
