"""The row that is recorded of a generation, and several as a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from escalade.strategies.shaping import usable
from escalade.support.numbers import number
from escalade.support.output import data_frame


@dataclass(frozen=True)
class Row:
    """One generation, and one row of progress.csv. Returns are of the population unless they say eval.

    Where a module is evolved with a fitness function, a return is what that function gave, and an
    episode is one call of it.
    """

    generation: int
    """1 for the first."""
    episodes: int
    """Episodes of members so far."""
    env_steps: int | None
    """Environment steps of those; None where there is no environment."""
    seconds: float
    return_mean: float
    return_std: float
    return_min: float
    return_max: float
    episode_length_mean: float | None
    eval_return_mean: float | None
    """Mean return of the unperturbed policy before this generation's update; None where it was not evaluated.

    Where that met the target, it is the mean of the fresh episodes that confirm or refute it."""
    unperturbed_rank: int | None
    """Its rank among the members: 1 when it beats all of them. None where it was not evaluated, or in
    episodes longer than a cap on theirs, or gave no usable number."""
    sigma: float
    lr: float
    """NaN for strategies without a step size."""
    update_ratio: float
    """Length of the update over that of the centre; 0 in the generation that met the target."""
    steps_per_second: float | None
    eval_steps: int | None
    """Environment steps of all evaluations so far, which ``env_steps`` does not count."""
    nonfinite: int
    """Episodes whose return was NaN, infinite or beyond 1e30: they are left out of the columns above."""
    info: tuple[tuple[str, float | None], ...] = ()
    """Further columns: means of what ``info_keys`` chose of the episodes' last infos, by column.

    ``KEY_mean`` is of the population, ``eval_KEY_mean`` of the evaluation; None where no episode had it.
    """
    quantiles: tuple[float, ...] = ()
    """Quantiles of the returns at :data:`LEVELS`; in population.csv."""

    def columns(self) -> dict[str, float | None]:
        """The row of progress.csv by column; the dictionary is the caller's own."""
        return {name: getattr(self, name) for name in COLUMNS} | dict(self.info)


COLUMNS = tuple(column.name for column in fields(Row) if column.name not in ("info", "quantiles"))
"""Columns of progress.csv, in its order; those of :attr:`Row.info` follow."""


DETERMINISTIC = "eval_return_deterministic"
"""The column of evaluations that take the best action, of a policy that draws its actions."""


def info_columns(keys: Sequence[str]) -> tuple[str, ...]:
    """The columns of ``keys`` of infos: means of the population, then of the evaluation."""
    return (*(f"{key}_mean" for key in keys), *(f"eval_{key}_mean" for key in keys))


def info_texts(row: Row, without: str = "") -> list[str]:
    """Return the known numbers of a row's ``info`` for the console, as ``name value``."""
    known = [(name, value) for name, value in row.info if value is not None and name != without]
    return [f"{name.removesuffix('_mean')} {number(value)}" for name, value in known]


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels of a row's quantiles."""
QUANTILES = tuple(f"return_q{round(100 * level):02d}" for level in LEVELS)
"""The columns of quantiles: 5 %, 25 %, 50 %, 75 % and 95 %."""


def of_returns(returns: NDArray[np.float64]) -> dict[str, Any]:
    """The columns of a :class:`Row` that tell how a generation's returns, shape (n,), are spread."""
    known = returns[usable(returns)]
    spread = known if len(known) else np.full(1, np.nan)
    return {
        "return_mean": float(spread.mean()),
        "return_std": float(spread.std()),
        "return_min": float(spread.min()),
        "return_max": float(spread.max()),
        "nonfinite": len(returns) - len(known),
        "quantiles": tuple(np.quantile(spread, LEVELS).tolist()),
    }


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


class Recorder(Protocol):
    """Gets every row and note of a run, in order."""

    def generation(self, row: Row) -> None:
        """A generation was done."""

    def note(self, text: str) -> None:
        """Something the user should know happened."""

    def close(self) -> None:
        """The run is over."""
