"""Numbers: those that a caller gives, checked by name, and those that a person reads."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

from escalade.errors import InputError

LARGEST = 1e30
"""The largest number that a schedule may hold; float32 ends at 3.4e38.

Returns and fitness beyond it, either way, are taken for those of a simulation that diverged.
"""
_WRITTEN_OUT = 1e12  # below it whole numbers are written out
_TO_A_TENTH = 1e7


def whole_number(value: Any, name: str, least: int | None = None) -> int:
    """``value`` as an int.

    Raises:
        InputError: it is none, such as 1.7, or below ``least``; the message names it.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} {value!r} must be a whole number") from None
    if least is not None and number < least:
        raise InputError(f"{name} {number} must be at least {least}")
    return number


def seed_number(seed: Any) -> int:
    """``seed`` as an int.

    Raises:
        InputError: it is none, or not one that fits 63 bits.
    """
    number = whole_number(seed, "seed")
    if not 0 <= number < 2**63:
        raise InputError(f"seed {seed} must be at least 0 and below 2**63")
    return number


def population_number(population: Any, least: int) -> int:
    """``population`` as an int.

    Raises:
        InputError: it is none, or below ``least``.
    """
    number = whole_number(population, "population")
    if number < least:
        raise InputError(f"population {number} is too small: it must be at least {least}")
    return number


def real_number(value: Any, name: str) -> float:
    """``value`` as a float.

    Raises:
        InputError: it is text, NaN or no number; the message names it.
    """
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last of a tensor of several numbers
        number = math.nan
    if math.isnan(number):
        raise InputError(f"{name} must be a number, not {value!r:.100}")
    return number


def counted(number: int, what: str) -> str:
    """A number of things in words: ``1 worker``, ``2 workers``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def workers_in_words(workers: int) -> str:
    """The place where members are run: ``in this process``, or ``2 workers``."""
    return counted(workers, "worker") if workers else "in this process"


def number(value: float | None) -> str:
    """A measured number as a person reads it: four digits that count at least, and no more than help.

    From 100 on to a tenth, whole numbers as they are, and the largest and smallest with an exponent:
    ``4,812.3``, ``0.00042``, ``500``, ``1.235e+10``. What is not there is a dash.
    """
    if value is None:
        return "-"
    size = abs(value)
    if size < _WRITTEN_OUT and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if 100 <= size < _TO_A_TENTH else f"{value:.4g}"


def plain(value: float | None) -> str:
    """The same without commas, where these stand between values: ``sigma=4812.3, lr=0.00042``."""
    return number(value).replace(",", "")


def finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as JSON can hold them, which has no NaN and no infinity: null instead."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
