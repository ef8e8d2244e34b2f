"""The rows of a run, by number; their columns, by name."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

from escalade.recorders.row import COLUMNS, Row
from escalade.support.frames import data_frame


class History(tuple[Row, ...]):
    """Rows of a run in their order, and the standard columns of progress.csv by their names.

    ``history[-1]`` is the last row and ``history["return_mean"]`` a list of one number a generation.
    ``dict(history)`` holds all of these; others are in each row's ``info``. What was not measured is None.
    """

    def keys(self) -> tuple[str, ...]:
        """The names of the columns."""
        return COLUMNS

    @overload
    def __getitem__(self, which: SupportsIndex) -> Row: ...

    @overload
    def __getitem__(self, which: slice) -> History: ...

    @overload
    def __getitem__(self, which: str) -> list[Any]: ...

    def __getitem__(self, which: SupportsIndex | slice | str) -> Row | History | list[Any]:
        if isinstance(which, slice):
            return History(super().__getitem__(which))
        if not isinstance(which, str):
            return super().__getitem__(which)
        if which not in COLUMNS:
            raise KeyError(f"{which!r} is no column: there are {', '.join(COLUMNS)}")
        return [getattr(row, which) for row in self]

    def __repr__(self) -> str:
        return f"History({len(self)} generations)"

    def to_pandas(self) -> Any:
        """The columns as a ``pandas.DataFrame``.

        Raises:
            InputError: pandas is not installed.
        """
        return data_frame(dict(self))
