"""Exceptions of the user's function that count as the worst of their generation."""

from __future__ import annotations

from escalade.errors import InputError

Catch = bool | type[Exception] | tuple[type[Exception], ...]
"""Exceptions of the user's function that count as the worst of their generation: True for all, or types."""


def caught(catch: Catch) -> tuple[type[BaseException], ...]:
    """Return ``catch`` as types of exceptions.

    Raises:
        InputError: it holds something else.
    """
    if isinstance(catch, bool):
        return (Exception, SystemExit) if catch else ()
    types = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(one, type) and issubclass(one, Exception) for one in types):
        raise InputError(
            f"catch {catch!r} must be True, or types of exceptions such as (ValueError, OSError)"
        )
    return types
