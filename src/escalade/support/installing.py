"""Instructions for installing a package that is missing."""

from __future__ import annotations

import importlib.util

from escalade.errors import InputError


def install(extra: str) -> str:
    """The line that installs one of Escalade's extras, as a package and in a checkout."""
    return f"pip install 'escalade[{extra}]' (in a checkout: pip install '.[{extra}]')"


def missing(*packages: str) -> list[str]:
    """The ``packages`` that are not installed."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def check_installed(what: str, extra: str, *packages: str) -> None:
    """Refuse ``what`` where one of its packages, which ``extra`` installs, is missing.

    Raises:
        InputError: one is; the message has the command that installs it.
    """
    if absent := missing(*packages):
        raise InputError(f"{what} needs {' and '.join(absent)}: {install(extra)}")
