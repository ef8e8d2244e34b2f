"""Results as they come in, in any order, one by one or as rows of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

Batch = tuple[Any, Any]
"""Items, and their results in the same order: rows of an array, or a list."""


class Ragged(NamedTuple):
    """Rows of two lengths: what all of them begin with, and the longer ones whole."""

    beginnings: NDArray[Any]
    """Shape (n, the shorter length)."""
    longer: NDArray[Any]
    """Items whose rows are longer, ascending: shape (k,)."""
    rows: NDArray[Any]
    """Their rows, shape (k, the longer length)."""


Ordered: TypeAlias = "list[Any] | NDArray[Any] | Ragged"
"""A job's results in the order of its items; see :meth:`Results.in_order`."""


class Results:
    """Collects the results of ``items`` items; each is put exactly once.

    Rows of arrays are kept as the arrays they came in, so that ten thousand results cost as many
    objects as there were messages.
    """

    def __init__(self, items: int) -> None:
        self.missing = items
        """How many results have not been put."""
        self._items = items
        self._single: dict[int, Any] = {}
        self._batches: list[Batch] = []

    def put(self, item: int, result: Any) -> None:
        """Keep one result."""
        self._single[item] = result
        self.missing -= 1

    def put_many(self, items: Sequence[int] | NDArray[Any], rows: NDArray[Any] | Sequence[Any]) -> None:
        """Keep several results: ``rows[k]`` is that of ``items[k]``."""
        if isinstance(rows, list):
            self._single.update(zip(map(int, items), rows, strict=True))
        else:
            self._batches.append((items, rows))
        self.missing -= len(items)

    def in_batches(self) -> list[Batch]:
        """The results in any order, in as few batches as their kinds allow."""
        single = [(list(self._single), list(self._single.values()))] if self._single else []
        return joined(self._batches) + single

    def in_order(self) -> Ordered:
        """The results of items 0, 1, 2, ...: an array when all were rows of arrays, else a list."""
        if self._batches and not self._single and all(rows.ndim == 2 for _, rows in self._batches):
            import numpy as np

            widths = {rows.shape[1] for _, rows in self._batches}
            found = np.empty((self._items, min(widths)), self._batches[0][1].dtype)
            for items, rows in self._batches:
                found[items] = rows[:, : min(widths)]
            return found if len(widths) == 1 else Ragged(found, *self._longest(max(widths)))
        for items, rows in self._batches:
            self._single.update(zip(map(int, items), rows, strict=True))
        return [self._single[item] for item in range(self._items)]

    def _longest(self, width: int) -> Batch:
        import numpy as np

        ((items, rows),) = joined([batch for batch in self._batches if batch[1].shape[1] == width])
        items = np.asarray(items, np.int64)
        order = np.argsort(items)
        return items[order], rows[order]


def joined(batches: list[Batch]) -> list[Batch]:
    """One batch of all whose rows have one shape and type."""
    kinds: dict[Any, list[Batch]] = {}
    for items, rows in batches:
        kinds.setdefault((rows.shape[1:], rows.dtype), []).append((items, rows))
    return [_one(same) if len(same) > 1 else same[0] for same in kinds.values()]


def _one(batches: list[Batch]) -> Batch:
    import numpy as np

    items = np.concatenate([np.asarray(items, np.int64) for items, _ in batches])
    return items, np.concatenate([rows for _, rows in batches])
