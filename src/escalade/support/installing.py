"""Instructions for installing a package that is missing."""

from __future__ import annotations


def install(extra: str) -> str:
    """The line that installs one of Escalade's extras, as a package and in a checkout."""
    return f"pip install 'escalade[{extra}]' (in a checkout: pip install '.[{extra}]')"
