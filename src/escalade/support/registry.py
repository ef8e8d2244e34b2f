"""Things that a user names: ours, by a short name in a registry, and their own, by ``package.module:Name``.

A registry is a dict from names to entries. An entry says where its thing is defined and what it can do, so
that both are known before anything is imported.
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
    """One thing of a registry, before its module is imported; subclasses say what such a thing can do."""

    title: str
    home: str
    """``package.module:name``; the module alone, where all of it is meant."""
    packages: tuple[str, ...] = ()
    """Packages that must be installed."""
    extra: str = ""
    """Escalade's extra that installs it."""
    options: frozenset[str] = frozenset()
    """Options of a run that it reads, of those that only some of its kind do."""

    @property
    def installed(self) -> bool:
        """True where its packages are there."""
        return not missing(*self.packages)

    def check_installed(self, option: str) -> None:
        """Refuse it as the value of ``option`` where a package is missing.

        Raises:
            InputError: one is; the message has the command that installs it.
        """
        check_installed(f"`{option}`: {self.title}", self.extra, *self.packages)

    def load(self) -> Any:
        """Import the home, and return the thing that it names."""
        return pkgutil.resolve_name(self.home)


def named(option: str, name: str, registry: Mapping[str, T]) -> T:
    """Look up ``name``, which a user gave as ``option``, in ``registry``; see :func:`check_named`.

    Raises:
        InputError: there is none; the message names the nearest.
    """
    check_named(option, name, registry)
    return registry[name]


def check_named(option: str, name: str, known: Iterable[str], others: str = "") -> None:
    """Refuse a ``name`` that is none of ``known``; ``others`` says what else ``option`` takes.

    Raises:
        InputError: it names the nearest, or all of them.
    """
    known = tuple(known)
    if name not in known:
        hint = nearest(str(name), known) or f": it must be one of {', '.join(known)}{others}"
        raise InputError(f"unknown `{option}` {name!r}{hint}")


def find(option: str, text: str, registry: Mapping[str, Entry]) -> Any:
    """Import the thing of an entry's name, or of ``package.module:Name`` of the user's.

    Raises:
        InputError: there is none, or it cannot be imported.
    """
    return imported(text, f"`{option}` {text}") if ":" in text else named(option, text, registry).load()
