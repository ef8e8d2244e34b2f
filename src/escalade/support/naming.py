"""Names of classes and functions: what a run records of code that it was given in Python."""

from __future__ import annotations

import sys
from typing import Any

from escalade.errors import InputError


def called(thing: object) -> str:
    """The name of a function or a class, without its module; a name as it is."""
    named = getattr(thing, "func", thing)  # what a partial calls
    return named if isinstance(named, str) else getattr(named, "__name__", type(named).__name__)


def name_of(thing: Any, what: str) -> str:
    """``module:name`` of a class or function, by which a resumed run finds it again.

    Raises:
        InputError: it has no such name; the message begins with ``what``.
    """
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    known = getattr(sys.modules.get(str(module)), str(name), None)
    if known is not thing or module is None:
        shown = name or type(thing).__name__
        if "<locals>" in str(name):
            raise InputError(
                f"{what} {shown} has no name that a resumed run could find, as it is local to a function: "
                "define it with def or class at the top of a module, a script or a notebook's cell, and pass "
                "the values that it uses with functools.partial"
            )
        raise InputError(
            f"{what} {shown} has no name that a resumed run could find: define it with def or class at "
            "the top of a module, a script or a notebook's cell"
        )
    return f"{module}:{name}"
