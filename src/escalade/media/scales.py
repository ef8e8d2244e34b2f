"""Axes of a chart: where they begin and end, their ticks, and numbers in few characters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from escalade.support.numbers import LARGEST

Array = NDArray[np.float64]

_FAR = 1.5  # how far beyond the middle 96 % of the numbers an axis goes, in widths of that middle
_UNITS = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From which size a unit is used, how much it is, and its letter."""


def usable(values: Array) -> NDArray[np.bool_]:
    """Which numbers can be drawn."""
    return np.isfinite(values) & (np.abs(np.nan_to_num(values, posinf=np.inf)) <= LARGEST)


def limits(parts: Iterable[Array]) -> tuple[float, float]:
    """The ends of an axis for some numbers: a few far outliers are left outside.

    Returns:
        Its lower and its upper end, never the same; (0, 1) where there is no number.
    """
    found = np.concatenate([np.zeros(0), *(part[usable(part)] for part in parts)])
    if not len(found):
        return 0.0, 1.0
    low, high = float(found.min()), float(found.max())
    inner = np.percentile(found, [2, 98])
    reach = _FAR * float(inner[1] - inner[0])
    if reach > 0:
        low, high = max(low, float(inner[0]) - reach), min(high, float(inner[1]) + reach)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-12):
        margin = abs(low) / 10 or 1.0
        return low - margin, high + margin
    margin = 0.04 * (high - low)
    # No margin below 0 where nothing is below it: shares and rates begin there.
    return (0.0 if 0 <= low < margin else low - margin), high + margin


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``: at most ``most`` steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def short(value: float) -> str:
    """A number in few characters, such as 1.53M."""
    unit, letter = _unit(abs(value))
    return f"{value / unit:.3g}{letter}" if unit > 1 else f"{value:.4g}"


def labels(at: Sequence[float]) -> list[str]:
    """What stands at the ticks of an axis: all in one unit, with as many digits as tell them apart."""
    unit, letter = _unit(max(map(abs, at), default=0.0))
    step = abs(at[1] - at[0]) / unit if len(at) > 1 else 0.0
    places = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 2
    if 0 < step < 1e-4:
        digits = math.floor(math.log10(max(map(abs, at)))) - math.floor(math.log10(step) + 1e-9) + 1
        return [f"{value:.{digits}g}" if value else "0" for value in at]
    return [f"{value / unit:,.{places}f}{letter}" if value else "0" for value in at]


def _unit(size: float) -> tuple[float, str]:
    return next(((unit, letter) for least, unit, letter in _UNITS if size >= least), (1.0, ""))


def thinned(at: Array, values: Array, buckets: int) -> tuple[Array, Array]:
    """A line with at most two points a bucket, its lowest and its highest: what is seen stays the same."""
    if len(at) <= 2 * buckets:
        return at, values
    kept: list[int] = []
    for part in np.array_split(np.arange(len(at)), buckets):
        kept += sorted({int(part[values[part].argmin()]), int(part[values[part].argmax()])})
    return at[kept], values[kept]


def averaged(columns: Sequence[Array], buckets: int) -> list[Array]:
    """Columns of the same rows, in means over at most so many buckets of neighbouring rows."""
    if len(columns[0]) <= buckets:
        return list(columns)
    parts = np.array_split(np.arange(len(columns[0])), buckets)
    return [np.array([column[part].mean() for part in parts]) for column in columns]
