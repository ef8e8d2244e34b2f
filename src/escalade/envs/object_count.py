"""Number of environment objects that a worker builds, if nobody chose one."""

from __future__ import annotations

import time

_SLOW_SECONDS = 0.2
_PATIENCE = 10.0  # times the seconds for an object that it is used before a second one is built


class ObjectCount:
    """Lets a worker build one object first, and the others if that was fast.

    Building an object, its first reset and its first step may load or compile something. A worker whose first
    object took long reuses it over episodes. As that may have been an import or another cost of the process,
    it builds a second object once the first has been used for ten times as long, and the others if that one
    was fast. Episodes do not depend on this number, so timing cannot change results.
    """

    def __init__(self, most: int) -> None:
        self._limit, self._most = 1, most
        self._second_at: float | None = None

    @property
    def limit(self) -> int:
        """Objects that may exist now; it only grows."""
        if self._limit == 1 and self._second_at is not None and time.monotonic() >= self._second_at:
            self._limit = min(2, self._most)
        return self._limit

    def took(self, seconds: float) -> None:
        """Take note of the seconds for an object: building, first reset and first step."""
        if seconds < _SLOW_SECONDS:
            self._limit = self._most
        elif self._second_at is None:
            self._second_at = time.monotonic() + _PATIENCE * seconds
