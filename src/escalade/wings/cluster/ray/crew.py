"""Several worker slots in one actor: processes of its machine, led by the local engine.

The driver then speaks with one actor where it would with many, so a cluster may be that much larger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from escalade.engines.base import Factory, Feed, ignore_note
from escalade.engines.processes import ProcessEngine


class Crew:
    """Work that hands its items on to ``processes`` local worker processes.

    One that gives no sign of life for ``step_timeout`` seconds is replaced.
    """

    def __init__(
        self,
        factory: Factory,
        processes: int,
        step_timeout: float | None,
        on_note: Callable[[str], None] = ignore_note,
    ) -> None:
        self._engine = ProcessEngine(factory, processes, step_timeout)
        self._engine.on_note = on_note
        self._processes = processes

    def info(self) -> dict[str, Any]:
        """The facts of one worker with all the slots. Items are run together, so a slot is not refilled."""
        info = self._engine.info
        return info | {"slots": info["slots"] * self._processes, "refills": False}

    def begin(self, job: Any) -> None:
        self._job = job

    def run(self, feed: Feed) -> None:
        self._engine.on_wait = feed.alive
        while items := feed.take(self.info()["slots"], wait=True):
            results = self._engine.run_some(self._job, items)
            for item, words in results.raised.items():
                feed.put_raised(item, words)
            for done, rows in results.in_batches():
                feed.put_many(done, rows)

    def close(self) -> None:
        self._engine.close()
