"""Checks of numeric arguments, and formatting of numbers for people."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

from escalade.errors import InputError

LARGEST = 1e30
"""The largest value of a schedule; float32 ends at 3.4e38.

Returns and fitness of larger magnitude count as those of a diverged simulation.
"""
_WRITTEN_OUT = 1e12  # below it whole numbers are written out
_TO_A_TENTH = 1e7


def whole_number(value: Any, name: str, least: int | None = None) -> int:
    """Convert ``value`` to an int.

    Raises:
        InputError: the value is not an integer, such as 1.7, or below ``least``; the message names it.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} {value!r} must be a whole number") from None
    if least is not None and number < least:
        raise InputError(f"{name} {number} must be at least {least}")
    return number


def seed_number(seed: Any) -> int:
    """Convert ``seed`` to an int.

    Raises:
        InputError: the seed is not an integer of at least 0 and below 2**63.
    """
    number = whole_number(seed, "seed")
    if not 0 <= number < 2**63:
        raise InputError(f"seed {seed} must be at least 0 and below 2**63")
    return number


def population_number(population: Any, least: int) -> int:
    """Convert ``population`` to an int.

    Raises:
        InputError: the population is not an integer, or is below ``least``.
    """
    number = whole_number(population, "population")
    if number < least:
        raise InputError(f"population {number} is too small: it must be at least {least}")
    return number


def real_number(value: Any, name: str) -> float:
    """Convert ``value`` to a float.

    Raises:
        InputError: the value is text, NaN or not a number; the message names it.
    """
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError for non-scalar tensors
        number = math.nan
    if math.isnan(number):
        raise InputError(f"{name} must be a number, not {value!r:.100}")
    return number


def counted(number: int, what: str) -> str:
    """Return a count with its noun: ``1 worker``, ``2 workers``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def workers_in_words(workers: int) -> str:
    """Describe where members run: ``in this process`` or ``2 workers``."""
    return counted(workers, "worker") if workers else "in this process"


def number(value: float | None) -> str:
    """Format a measured number for people, with at least four significant digits.

    Whole numbers are written out, others from 100 on with one decimal, and very large or small ones with an
    exponent: ``500``, ``4,812.3``, ``0.00042``, ``1.235e+10``. None is a dash.
    """
    if value is None:
        return "-"
    size = abs(value)
    if size < _WRITTEN_OUT and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if 100 <= size < _TO_A_TENTH else f"{value:.4g}"


def plain(value: float | None) -> str:
    """Format a number without commas, for lists such as ``sigma=4812.3, lr=0.00042``."""
    return number(value).replace(",", "")


def finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace NaN and infinities by None, as JSON has no such numbers."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
