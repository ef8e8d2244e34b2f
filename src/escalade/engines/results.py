"""Collects results in any order, one by one or as rows of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

Batch = tuple[Any, Any]
"""Items, and their results in the same order as rows of an array or as a list."""


class Results:
    """Collects the results of ``items`` items, each of which is stored exactly once.

    Rows are stored in the arrays in which they arrived, so the number of objects is that of the messages,
    not that of the results.
    """

    def __init__(self, items: int) -> None:
        self.missing = items
        """Number of missing results."""
        self.raised: dict[int, str] = {}
        """Messages of tolerated exceptions, by item. These items have results as well."""
        self._items = items
        self._single: dict[int, Any] = {}
        self._batches: list[Batch] = []

    def put(self, item: int, result: Any) -> None:
        """Store one result."""
        self._single[item] = result
        self.missing -= 1

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any] | Sequence[Any]) -> None:
        """Store several results: ``rows[k]`` is that of ``items[k]``."""
        if isinstance(rows, list):
            self._single.update(zip(map(int, items), rows, strict=True))
        else:
            self._batches.append((items, rows))
        self.missing -= len(items)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with batches joined, so that the sender does this work and not the receiver."""
        return vars(self) | {"_batches": joined(self._batches)}

    def in_batches(self) -> list[Batch]:
        """Return the results in any order, in as few batches as their shapes and types allow."""
        single = [(list(self._single), list(self._single.values()))] if self._single else []
        return joined(self._batches) + single

    def in_order(self) -> list[Any] | NDArray[Any]:
        """Return the results of items 0, 1, 2, ...

        Returns:
            An array if all were rows of arrays of one shape and type, otherwise a list.
        """
        batches = self.in_batches()
        if len(batches) == 1 and not self._single:
            import numpy as np

            ((items, rows),) = batches
            found: NDArray[Any] = np.empty_like(rows)
            found[np.asarray(items)] = rows
            return found
        ordered: list[Any] = [None] * self._items
        for items, rows in batches:
            for item, row in zip(items, rows, strict=True):
                ordered[item] = row
        return ordered


def joined(batches: list[Batch]) -> list[Batch]:
    """Join the batches whose rows have the same shape and type."""
    kinds: dict[Any, list[Batch]] = {}
    for items, rows in batches:
        kinds.setdefault((rows.shape[1:], rows.dtype), []).append((items, rows))
    return [_concatenated(same) if len(same) > 1 else same[0] for same in kinds.values()]


def _concatenated(batches: list[Batch]) -> Batch:
    import numpy as np

    items = np.concatenate([np.asarray(items, np.int64) for items, _ in batches])
    return items, np.concatenate([rows for _, rows in batches])
