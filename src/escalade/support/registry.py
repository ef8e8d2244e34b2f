"""Registries of named parts, and lookup of a user's own ``package.module:Name``.

A registry is a dict from names to entries. An entry records where a part is defined and what it can do, so
that both are known before the part is imported.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from escalade.errors import InputError, nearest
from escalade.support.imports import check_installed, imported, missing

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A part in a registry, before its module is imported; subclasses add the properties of such parts."""

    title: str
    home: str
    """``package.module:name``, or ``package.module`` for the whole module."""
    packages: tuple[str, ...] = ()
    """Packages that must be installed."""
    extra: str = ""
    """Escalade's extra that installs the packages."""
    options: frozenset[str] = frozenset()
    """Options of a run that this part reads, among those that only some parts of the registry read."""

    @property
    def installed(self) -> bool:
        """True if its packages are installed."""
        return not missing(*self.packages)

    def check_installed(self, option: str) -> None:
        """Check that the packages needed for this value of ``option`` are installed.

        Raises:
            InputError: a package is missing; the message names the extra that installs it.
        """
        check_installed(f"`{option}`: {self.title}", self.extra, *self.packages)

    def load(self) -> Any:
        """Import and return the part."""
        return pkgutil.resolve_name(self.home)


def named(option: str, name: str, registry: Mapping[str, T]) -> T:
    """Look up ``name``, the value of ``option``, in ``registry``.

    Raises:
        InputError: the name is unknown; the message names the nearest known one.
    """
    check_named(option, name, registry)
    return registry[name]


def check_named(option: str, name: str, known: Iterable[str], others: str = "") -> None:
    """Check that ``name`` is one of ``known``.

    Args:
        option: option with this value, for errors.
        name: the value.
        known: known names.
        others: further values that the option takes, for errors.

    Raises:
        InputError: the name is unknown; the message names the nearest known one, or all of them.
    """
    known = tuple(known)
    if name not in known:
        hint = nearest(str(name), known) or f": it must be one of {', '.join(known)}{others}"
        raise InputError(f"unknown `{option}` {name!r}{hint}")


def find(option: str, text: str, registry: Mapping[str, Entry]) -> Any:
    """Import a part by its name in ``registry``, or the user's own ``package.module:Name``.

    Raises:
        InputError: the name is unknown, or the import fails.
    """
    return imported(text, f"`{option}` {text}") if ":" in text else named(option, text, registry).load()
