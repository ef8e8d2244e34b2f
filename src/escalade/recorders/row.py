"""The row that is recorded for each generation, and the history of a run."""

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
    """One generation, which is one row of progress.csv.

    Returns are those of the population, except in columns with eval. For a module with a fitness function, a
    return is a value of that function, and an episode is one call of it.
    """

    generation: int
    """Number of the generation, from 1."""
    episodes: int
    """Episodes of members so far."""
    env_steps: int | None
    """Environment steps of these episodes, or None without an environment."""
    seconds: float
    return_mean: float
    return_std: float
    return_min: float
    return_max: float
    episode_length_mean: float | None
    eval_return_mean: float | None
    """Mean return of the unperturbed policy before this generation's update, or None without an evaluation.

    If that mean reached the target, this is the mean of the new episodes that confirm or refute it."""
    unperturbed_rank: int | None
    """Rank of the unperturbed policy among the members; 1 if it is better than all of them.

    None without an evaluation, if its episodes were longer than the members' cap, or if its return is not
    usable."""
    sigma: float
    lr: float
    """NaN for strategies without a step size."""
    update_ratio: float
    """Norm of the update divided by that of the center; 0 in the generation that reached the target."""
    steps_per_second: float | None
    eval_steps: int | None
    """Environment steps of all evaluations so far, which are not part of ``env_steps``."""
    nonfinite: int
    """Number of episodes whose return is NaN, infinite or beyond 1e30. Other columns ignore them."""
    info: tuple[tuple[str, float | None], ...] = ()
    """Further columns with means of the ``info_keys`` of the episodes' last infos.

    ``KEY_mean`` is of the population, ``eval_KEY_mean`` of the evaluation. None if no episode had the key.
    """
    quantiles: tuple[float, ...] = ()
    """Quantiles of the returns at :data:`LEVELS`, for population.csv."""

    def columns(self) -> dict[str, float | None]:
        """Return the row of progress.csv by column, in a new dictionary."""
        return {name: getattr(self, name) for name in COLUMNS} | dict(self.info)


COLUMNS = tuple(column.name for column in fields(Row) if column.name not in ("info", "quantiles"))
"""Columns of progress.csv in order. Those of :attr:`Row.info` follow."""


DETERMINISTIC = "eval_return_deterministic"
"""Column of evaluations with the best action, for policies that sample actions."""


def info_columns(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of ``info_keys``: means of the population, then of the evaluation."""
    return (*(f"{key}_mean" for key in keys), *(f"eval_{key}_mean" for key in keys))


def info_texts(row: Row, without: str = "") -> list[str]:
    """Return the known numbers of a row's ``info`` for the console, as ``name value``."""
    known = [(name, value) for name, value in row.info if value is not None and name != without]
    return [f"{name.removesuffix('_mean')} {number(value)}" for name, value in known]


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels of a row's quantiles."""
QUANTILES = tuple(f"return_q{round(100 * level):02d}" for level in LEVELS)
"""Columns of the quantiles 5 %, 25 %, 50 %, 75 % and 95 %."""


def of_returns(returns: NDArray[np.float64]) -> dict[str, Any]:
    """Return the columns of a :class:`Row` with statistics of a generation's returns, shape (n,)."""
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
    """Rows of a run in order, and the standard columns of progress.csv by name.

    ``history[-1]`` is the last row, ``history["return_mean"]`` a list with one number per generation, and
    ``dict(history)`` contains all standard columns. Others are in each row's ``info``. Values that were not
    measured are None.
    """

    def keys(self) -> tuple[str, ...]:
        """Return the names of the columns."""
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
            raise KeyError(f"{which!r} is not a column; choose one of {', '.join(COLUMNS)}")
        return [getattr(row, which) for row in self]

    def __repr__(self) -> str:
        return f"History({len(self)} generations)"

    def to_pandas(self) -> Any:
        """Return the columns as a ``pandas.DataFrame``.

        Raises:
            InputError: pandas is not installed.
        """
        return data_frame(dict(self))


class Recorder(Protocol):
    """Interface of recorders, which receive every row and note of a run in order."""

    def generation(self, row: Row) -> None:
        """Record a generation."""

    def note(self, text: str) -> None:
        """Record a message for the user."""

    def close(self) -> None:
        """End the recording."""
