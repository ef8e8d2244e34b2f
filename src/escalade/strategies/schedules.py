"""Schedules of the step size, the noise scale or the population, as functions of the generation."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from escalade.errors import InputError
from escalade.support.numbers import LARGEST

Schedule = Callable[[int], float]
"""A function from the generation (0 for the first) to the value."""

Rate = float | str | Schedule
"""A number, a schedule, or the text of a schedule."""


@dataclass(frozen=True)
class Formula:
    """A schedule from a number or a text: its kind and its numbers."""

    kind: str
    numbers: tuple[float, ...]

    def __call__(self, generation: int) -> float:
        return _FORMULAS[self.kind].value(generation, *self.numbers)

    @property
    def ends_at_zero(self) -> bool:
        """True if the final value is 0, or the factor and the floor of an exponential schedule are."""
        return not any(self.numbers[1:] if self.kind == "exponential" else self.numbers[1:2])


class _Kind(NamedTuple):
    value: Callable[..., float]
    form: str
    fewest: int = 3


def _constant(generation: int, value: float) -> float:
    return value


def _exponential(generation: int, start: float, factor: float, floor: float = 0.0) -> float:
    return max(_grown(start, factor, generation), floor)


def _linear(generation: int, start: float, end: float, generations: float) -> float:
    return start + (end - start) * min(generation / generations, 1.0)


def _cosine(generation: int, start: float, end: float, generations: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(generation / generations, 1.0))) / 2


def _step(generation: int, start: float, factor: float, every: float) -> float:
    return _grown(start, factor, generation // every)


def _grown(start: float, factor: float, times: float) -> float:
    """Return ``start * factor**times``, at most the largest float."""
    try:  # with floats, because integers would grow without limit, ever slower
        return min(float(start * float(factor) ** times), sys.float_info.max)
    except OverflowError:
        return sys.float_info.max


_FORMULAS = {
    "exponential": _Kind(_exponential, "START:FACTOR[:FLOOR]", 2),
    "linear": _Kind(_linear, "START:END:GENERATIONS"),
    "cosine": _Kind(_cosine, "START:END:GENERATIONS"),
    "step": _Kind(_step, "START:FACTOR:EVERY"),
    "constant": _Kind(_constant, "", 1),
}
FORMS = ", ".join(f"{name}:{kind.form}" for name, kind in _FORMULAS.items() if kind.form)


def parse(value: Rate, name: str = "schedule", zero: bool = False) -> Schedule:
    """Create a schedule from a number, a text such as ``exponential:0.1:0.99:0.01``, or a function.

    Every number in the text must be finite, and the first value positive. The values of a function are
    checked in each generation.

    Args:
        value: the number, text or function.
        name: name of the argument, for error messages.
        zero: True if a function may return 0.

    Examples:
        >>> [parse("step:0.1:0.5:10")(generation) for generation in (0, 9, 10)]
        [0.1, 0.1, 0.05]

    Raises:
        InputError: the text has no known form, or a number in it is out of range.
    """
    if callable(value):
        return partial(_checked, value, name, zero)
    kind, *rest = str(value).split(":")
    try:
        if not rest:
            kind, rest = "constant", [kind]
        numbers = tuple(map(float, rest))
        if not _FORMULAS[kind].fewest <= len(numbers) <= _FORMULAS[kind].form.count(":") + 1:
            raise ValueError
    except (KeyError, ValueError):
        raise InputError(f"{name} {str(value)!r} is neither a number nor one of {FORMS}") from None
    if not all(0 <= number <= LARGEST for number in numbers) or numbers[0] == 0:
        raise InputError(
            f"{name} {value!r} must start above 0, and its numbers must be from 0 to {LARGEST:g}"
        )
    if len(numbers) == 3 and kind != "exponential" and numbers[2] == 0:
        raise InputError(f"{name} {value!r}: its last number must be above 0")
    return Formula(kind, numbers)


def _checked(schedule: Schedule, name: str, zero: bool, generation: int) -> float:
    """Return the value of ``schedule``, or raise InputError if no step can be scaled by it."""
    value = schedule(generation)
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        number = math.nan
    if not (0 < number <= LARGEST or (zero and number == 0)):
        least = "at least 0" if zero else "above 0"
        raise InputError(
            f"{name} is {value!r} in generation {generation + 1} (called with {generation}); a schedule "
            f"must return numbers {least} and at most {LARGEST:g}"
        )
    return number


SMALLEST_SIGMA = 1e-8
"""Smallest value of a sigma schedule, so that members differ from the center."""


def parse_sigma(value: Rate, name: str = "sigma") -> Schedule:
    """Parse the schedule of a noise scale, which may become small but not zero.

    Raises:
        InputError: as :func:`parse`, or the schedule ends at zero.
    """
    schedule = parse(value, name)
    if isinstance(schedule, Formula):
        if schedule.kind == "constant":
            return schedule
        if schedule.ends_at_zero:
            raise InputError(f"{name} {value!r} ends at 0, where all members are equal; end it above 0")
    return partial(_above_zero, schedule)


def _above_zero(schedule: Schedule, generation: int) -> float:
    return max(schedule(generation), SMALLEST_SIGMA)


def parse_share(value: Rate, name: str) -> Schedule:
    """Parse the schedule of a fraction from 0 to 1 of a step.

    A fraction above 1 would overshoot.

    Raises:
        InputError: as :func:`parse`, or the fraction is above 1 in the first or a later generation.
    """
    share = partial(_share, parse(value, name, zero=True), name)
    share(0)
    return share


def _share(schedule: Schedule, name: str, generation: int) -> float:
    part = schedule(generation)
    if part > 1:
        when = f" in generation {generation + 1}" if generation else ""
        raise InputError(f"{name} {part:g}{when} must be at most 1, the full step")
    return part


SMALLEST_POPULATION, LARGEST_POPULATION = 2, 10**7


class PopulationSchedule(str):
    """A schedule of the population as text.

    Its values are even numbers of members.

    Examples:
        >>> [PopulationSchedule("linear:16:64:48").members(generation) for generation in (0, 1, 2, 48, 99)]
        [16, 16, 18, 64, 64]

    Raises:
        InputError: as :func:`parse`, or the first or last population is out of range.
    """

    _schedule: Schedule

    def __new__(cls, text: str) -> PopulationSchedule:
        made = super().__new__(cls, text)
        if ":" not in made:
            raise InputError(f"`population` {text!r} is neither a whole number nor one of {FORMS}")
        schedule = parse(str(made), "`population`")
        assert isinstance(schedule, Formula)  # parse() returns one for every text
        ends = schedule.numbers[: 2 if schedule.kind in ("linear", "cosine") else 1]
        if not all(SMALLEST_POPULATION <= end <= LARGEST_POPULATION for end in ends):
            bounds = f"{SMALLEST_POPULATION} and {LARGEST_POPULATION}"
            raise InputError(f"`population` {text!r} must stay between {bounds} members")
        made._schedule = schedule
        return made

    def members(self, generation: int) -> int:
        """Return the number of members in ``generation``, counted from 0."""
        wanted = 2 * round(self._schedule(generation) / 2)
        return min(max(wanted, SMALLEST_POPULATION), LARGEST_POPULATION)


def members(population: int | PopulationSchedule, generation: int) -> int:
    """Return the number of members in ``generation``, with or without a schedule."""
    return population.members(generation) if isinstance(population, PopulationSchedule) else population
