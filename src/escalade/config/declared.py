"""The declaration of an option: what it may be stands with it, and is checked from there."""

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
    """Limits of an option, and facts for ``--help`` and resuming."""

    group: str
    """The heading of ``--help`` that it stands under."""
    help: str
    """Its effect, in one line."""
    form: str | None = None
    """The form of its value, such as ``N``; None if its type says that."""
    choices: Collection[str] = ()
    """The names it takes, if its type does not list them, such as a registry. Options that only some entries
    of a registry read (:attr:`Entry.options`) are refused with the others."""
    own: str = ""
    """The form of what else it takes, of the user's own: with a colon in it."""
    min: float | None = None
    """The least that a number, or each of several, may be."""
    above: float | None = None
    below: float | None = None
    max: float | None = None
    lengths: Collection[int] = ()
    """The numbers of numbers that it may hold."""
    check: Callable[[Any], object] | None = None
    """Refuses values that are otherwise right, with an :class:`InputError`."""
    unset: str = "none"
    """The meaning of None."""
    resumable: bool = False
    """True if it may change when a run is resumed."""
    free: bool = False
    """True if no result of a run depends on it."""
    settled: bool = False
    """True if a run settles it by its environment when it is not given."""
    flag: str | None = None
    """Its flag, if that is not its name."""
    repeats: bool = False
    """True if its flag may be given several times."""
    rare: bool = False
    """True if only ``--help-all`` lists it."""


def option(group: str, default: Any, help: str, **declared: Any) -> Any:
    """A field of a config's dataclass; its metadata are those of a :class:`Declaration`."""
    metadata = vars(Declaration(group, help, **declared))
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def check_declared(options: Mapping[str, Field[Any]], values: Mapping[str, Any]) -> None:
    """Check each of ``values`` against what is declared of its option.

    Raises:
        InputError: one is not as declared; the message names it and the mend.
    """
    given = [name for name, value in values.items() if value not in (options[name].default, {}, ())]
    for name in given:
        _check_value(name, values[name], options[name].metadata)
    for chooser, option in options.items():
        chosen, readers = values[chooser], readers_of(option)
        for name, able in readers.items():
            if name in given and chosen in option.metadata["choices"] and chosen not in able:
                use = f"leave it out (for {', '.join(able)})"
                raise InputError(f"`{name}` does nothing with `{chooser}` {chosen}: {use}")


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
    """The options that only some entries of a registry read, and by whom; none where there is no registry."""
    choices = chooser.metadata["choices"]
    entries = choices.items() if isinstance(choices, dict) else ()
    readers: dict[str, list[str]] = {}
    for known, entry in entries:
        for name in sorted(entry.options) if isinstance(entry, Entry) else ():
            readers.setdefault(name, []).append(known)
    return readers
