"""Declarations of options, with their allowed values, and the checks against them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, field
from operator import ge, gt, le, lt
from typing import Any

from escalade.errors import InputError
from escalade.support.registry import Entry, check_named

_BOUNDS = {"min": ("at least", ge), "above": ("above", gt), "below": ("below", lt), "max": ("at most", le)}


@dataclass(frozen=True)
class Declaration:
    """Limits of an option, and its properties in ``--help`` and on resume."""

    group: str
    """The heading of the option in ``--help``."""
    help: str
    """A noun phrase for ``--help``."""
    form: str | None = None
    """The form of the value, such as ``N``; None to derive it from the type."""
    choices: Collection[str] = ()
    """Allowed names, such as a registry, unless the type lists them.

    Options that only some entries of a registry read (:attr:`Entry.options`) are refused with the others.
    """
    own: str = ""
    """The form of the user's own values, which contain a colon."""
    min: float | None = None
    """The minimum of a number, or of each of several."""
    above: float | None = None
    below: float | None = None
    max: float | None = None
    lengths: Collection[int] = ()
    """The allowed lengths of a tuple."""
    check: Callable[[Any], object] | None = None
    """A further check, which raises :class:`InputError`."""
    unset: str = "none"
    """The meaning of None, for ``--help``."""
    resumable: bool = False
    """True if the option may change when a run is resumed."""
    free: bool = False
    """True if the option does not affect results."""
    settled: bool = False
    """True if a run derives the option from its environment when it is not set."""
    flag: str | None = None
    """The name of the flag, if it differs from the option's."""
    repeats: bool = False
    """True if the flag may be repeated."""
    rare: bool = False
    """True if only ``--help-all`` lists the flag."""


def option(group: str, default: Any, help: str, **declared: Any) -> Any:
    """Return a dataclass field whose metadata are the attributes of a :class:`Declaration`."""
    metadata = vars(Declaration(group, help, **declared))
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def check_declared(options: Mapping[str, Field[Any]], values: Mapping[str, Any]) -> None:
    """Check each of ``values`` against the declaration of its option.

    Raises:
        InputError: a value is not allowed; the message names it and what to do about it.
    """
    changed = [name for name, value in values.items() if value not in (options[name].default, {}, ())]
    for name in changed:
        _check_value(name, values[name], options[name].metadata)
    for chooser, option in options.items():
        chosen, readers = values[chooser], readers_of(option)
        for name, able in readers.items():
            if name in changed and chosen in option.metadata["choices"] and chosen not in able:
                fix = f"remove it (it is for {', '.join(able)})"
                raise InputError(f"`{name}` has no effect with `{chooser}` {chosen}; {fix}")


def _check_value(name: str, value: Any, declared: Mapping[str, Any]) -> None:
    own = declared["own"]
    if declared["choices"] and not (own and ":" in value):
        check_named(name, value, declared["choices"], own and f", or {own}")
    several = value if isinstance(value, tuple) else (value,)
    for number in several:
        if isinstance(number, int | float) and not isinstance(number, bool):
            shown = f"`{name}` {','.join(map(str, several))}"
            if math.isinf(number):
                raise InputError(f"{shown} must be a finite number")
            for end, (words, holds) in _BOUNDS.items():
                if declared[end] is not None and not holds(number, declared[end]):
                    raise InputError(f"{shown} must be {words} {declared[end]}")
    if isinstance(value, tuple) and declared["lengths"] and len(value) not in declared["lengths"]:
        allowed = " or ".join(str(length) for length in declared["lengths"] if length)
        raise InputError(f"`{name}` {','.join(map(str, value))} must be {allowed} whole numbers")
    if declared["check"] is not None:
        declared["check"](value)


def readers_of(chooser: Field[Any]) -> dict[str, list[str]]:
    """Map the options that only some entries of the registry read to those entries."""
    choices = chooser.metadata["choices"]
    entries = choices.items() if isinstance(choices, dict) else ()
    readers: dict[str, list[str]] = {}
    for known, entry in entries:
        for name in sorted(entry.options) if isinstance(entry, Entry) else ():
            readers.setdefault(name, []).append(known)
    return readers
