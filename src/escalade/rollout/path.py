"""The center's episode, in whose states members' episodes start (``cutoff along``).

Over the generations, members see all parts of it, in few steps each. Every worker plays it itself, so that a
member's episode does not depend on the worker; its result counts once. States more than :data:`APART` steps
after its last reward are left out, because the center gains nothing there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.engines.base import Feed
from escalade.engines.feed import ListFeed
from escalade.envs.vector import KeepingVector

APART = 40
"""Steps between two states that are kept."""


class Path(ListFeed):
    """A feed of this episode alone, and the states that it went through.

    Args:
        item: the episode's number in the job.
        vector: the environments' slots; the episode is played in the first.
    """

    def __init__(self, item: int, vector: KeepingVector) -> None:
        super().__init__(1)
        self.item = item
        self._vector = vector
        self._states: list[Any] = []
        self._paid = 0.0
        self._kept = 1  # states up to APART steps after the last reward

    def take(self, most: int, wait: bool) -> list[int]:
        return [self.item]

    def keep(self, step: int, slot: int, paid: float) -> None:
        """Keep the state at every :data:`APART`-th step; ``paid`` is the sum of the rewards before it."""
        if paid != self._paid:
            self._paid, self._kept = paid, step // APART + 2
        if step % APART == 0:
            self._states.append(self._vector.keep(slot))

    def end(self, paid: float) -> None:
        """End the episode; ``paid`` is the sum of its rewards.

        A reward in the last step counts only if it is the only one. If it always does, Pong, which ends with
        a point, learns later, at least with two seeds (benchmarks/atari.md, "The last rally").
        """
        if self._kept == 1 and paid:
            self._kept = len(self._states)

    def others(self, items: list[int], feed: Feed, wait: bool) -> list[int]:
        """Return ``items`` without this episode, whose result is handed in if it is among them.

        With ``wait``, the list is empty only at the feed's end.
        """
        if self.item not in items:
            return items
        for played, records in self.results.in_batches():
            feed.put_many(played, records)
        left = [item for item in items if item != self.item]
        return left if left or not wait else feed.take(1, wait=True)

    def begin(
        self, along: NDArray[np.bool_], slots: NDArray[np.int64], seeds: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Begin an episode in each slot, if ``along`` in a state drawn by its seed. Return observations."""
        kept = self._states[: self._kept]
        states = [kept[seed % len(kept)] for seed in seeds[along].tolist()]
        first = self._vector.go_on(slots[along], states)
        if along.all():
            return first
        fresh = self._vector.reset(slots[~along], seeds[~along])
        seen = np.empty((len(slots), *fresh.shape[1:]), fresh.dtype)
        seen[along], seen[~along] = first, fresh
        return seen
