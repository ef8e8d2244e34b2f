"""The declaration of an option: what it may be stands with it, and is checked from there."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, field
from operator import ge, gt, le, lt
from typing import Any

from escalade.errors import InputError
from escalade.support.registry import Entry, check_named

_HOLDS = {"at least": ge, "above": gt, "below": lt, "at most": le}


def option(
    group: str,
    default: Any,
    text: str,
    *,
    form: str | None = None,
    choices: Collection[str] = (),
    own: str = "",
    min: float | None = None,
    above: float | None = None,
    below: float | None = None,
    max: float | None = None,
    lengths: Collection[int] = (),
    check: Callable[[Any], object] | None = None,
    unset: str = "none",
    resumable: bool = False,
    free: bool = False,
    settled: bool = False,
    flag: str | None = None,
    repeats: bool = False,
    rare: bool = False,
) -> Any:
    """A field of a config's dataclass, with what it may be and what ``--help`` and resuming must know of it.

    Args:
        group: the heading of ``--help`` that it stands under.
        default: its value when it is not given.
        text: what it does, in one line.
        form: how its value is written, such as ``N``; None where its type says that.
        choices: the names it takes, where its type does not list them, such as a registry. Options that only
            some entries of a registry read (:attr:`Entry.options`) are refused with the others.
        own: the form of what else it takes, of the user's own: with a colon in it.
        min: a number is at least this, and so is each of several.
        above: likewise, above this.
        below: likewise, below this.
        max: likewise, at most this.
        lengths: how many numbers it may hold.
        check: refuses values that are otherwise right, with an :class:`InputError`.
        unset: what None stands for.
        resumable: whether it may change when a run is resumed.
        free: whether no result of a run depends on it.
        settled: whether a run settles it by its environment if it is not given.
        flag: its flag, where that is not its name.
        repeats: whether its flag may be given several times.
        rare: whether only ``--help-all`` lists it.
    """
    bounds = {"at least": min, "above": above, "below": below, "at most": max}
    metadata = {
        "group": group,
        "help": text,
        "form": form,
        "choices": choices,
        "own": own,
        "bounds": {words: bound for words, bound in bounds.items() if bound is not None},
        "lengths": lengths,
        "check": check,
        "unset": unset,
        "resumable": resumable,
        "free": free,
        "settled": settled,
        "flag": flag,
        "repeats": repeats,
        "rare": rare,
    }
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
            for words, bound in declared["bounds"].items():
                if not _HOLDS[words](number, bound):
                    raise InputError(f"{shown} must be {words} {bound}")
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
