"""How an option is written on the command line."""

from __future__ import annotations


def flag(name: str) -> str:
    """``target_return`` as ``--target-return``."""
    return "--" + name.replace("_", "-")
