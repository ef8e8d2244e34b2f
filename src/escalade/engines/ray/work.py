"""One job's items: which wait, who has which, and which are done."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.engines.ray.messages import Handle
from escalade.engines.results import Batch, Results


@dataclass
class Chunk:
    """Items that were given to a worker together."""

    worker: Handle
    items: Sequence[int]
    began: float
    repeat: bool = False
    """Whether another worker had these items before."""
    doubled: bool = False
    """Whether another worker was given the same items, because this one is late."""


@dataclass
class Items:
    """The items 0 to ``count - 1`` of a job, each done exactly once.

    Every ``workers``-th item goes together: long and short episodes mix, and neighbours do not bunch.
    """

    count: int
    workers: int
    results: Results = field(init=False)
    chunks: dict[int, Chunk] = field(default_factory=dict)
    """In workers' hands, by number, oldest first."""

    def __post_init__(self) -> None:
        strides = range(min(self.workers, self.count))
        self._waiting = deque(i for first in strides for i in range(first, self.count, self.workers))
        self._again: deque[Sequence[int]] = deque()
        self._done = np.zeros(self.count, np.bool_)
        self.results = Results(self.count)

    @property
    def left(self) -> int:
        """How many are not done."""
        return self.results.missing

    @property
    def waiting(self) -> bool:
        """Whether there is something to hand out."""
        return bool(self._waiting or self._again)

    def take(self, most: int) -> tuple[Sequence[int], bool]:
        """Up to ``most`` items, and whether some worker had them before."""
        if self._again:
            lost = self._again.popleft()
            if len(lost) > most:
                self._again.appendleft(lost[most:])
            return lost[:most], True
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))], False

    def give_back(self, number: int) -> bool:
        """A chunk's worker is gone: what is not done of it waits again. Whether there was any."""
        chunk = self.chunks.pop(number)
        if chunk.doubled:
            return False  # the worker that has them too goes on
        left = [item for item in chunk.items if not self._done[item]]
        if left:
            self._again.append(left)
        return bool(left)

    def finish(self, number: int, results: Sequence[Batch]) -> list[Batch]:
        """Take a chunk's results in; those that are new."""
        del self.chunks[number]
        return [self._take_in(np.asarray(items, np.int64), rows) for items, rows in results]

    def _take_in(self, items: NDArray[np.int64], rows: Any) -> Batch:
        new = ~self._done[items]
        self._done[items] = True
        if not new.all():
            rows = rows[new] if isinstance(rows, np.ndarray) else [rows[k] for k in np.flatnonzero(new)]
            items = items[new]
        self.results.put_many(items, rows)
        return items, rows

    def late(self, seconds: float) -> Chunk | None:
        """The chunk that was handed out longest ago, when that is over ``seconds`` and nobody else has it."""
        for chunk in self.chunks.values():
            if not chunk.doubled and not chunk.repeat:
                return chunk if time.monotonic() - chunk.began > seconds else None
        return None
