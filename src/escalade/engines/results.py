"""Results as they come in, in any order, one by one or as rows of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Results:
    """Collects the results of items 0 to ``items - 1``, or of those in ``only``; each is put exactly once.

    Rows of arrays are kept as the arrays they came in, so that ten thousand results cost as many
    objects as there were messages.
    """

    def __init__(self, items: int, only: Sequence[int] | None = None) -> None:
        self.missing = items if only is None else len(only)
        """How many results have not been put."""
        self._items = items
        self._only = only
        self._single: dict[int, Any] = {}
        self._batches: list[tuple[Any, NDArray[Any]]] = []

    def put(self, item: int, result: Any) -> None:
        """Keep one result."""
        self._single[item] = result
        self.missing -= 1

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any]) -> None:
        """Keep several results: row k is that of ``items[k]``."""
        self._batches.append((items, rows))
        self.missing -= len(items)

    def in_order(self) -> list[Any] | NDArray[Any]:
        """The results in the order of items: an array when all were rows of arrays, else a list."""
        if self._batches and not self._single:
            import numpy as np

            first = self._batches[0][1]
            if all(rows.shape[1:] == first.shape[1:] for _, rows in self._batches):
                found = np.empty((self._items, *first.shape[1:]), first.dtype)
                for items, rows in self._batches:
                    found[items] = rows
                return found if self._only is None else found[list(self._only)]
        for items, rows in self._batches:
            self._single.update(zip(map(int, items), rows, strict=True))
        return [self._single[item] for item in (range(self._items) if self._only is None else self._only)]
