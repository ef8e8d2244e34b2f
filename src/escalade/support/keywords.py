"""The names of the arguments that a function or a class takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any


def keywords_of(factory: Callable[..., Any]) -> set[str] | None:
    """Names that ``factory`` takes; None when it takes any."""
    if isinstance(factory, partial):
        return keywords_of(factory.func)
    if isinstance(factory, type):
        return _keywords_of_class(factory)
    parameters = inspect.signature(factory).parameters.values()
    if any(part.kind is inspect.Parameter.VAR_KEYWORD for part in parameters):
        return None
    return {part.name for part in parameters}


def _keywords_of_class(kind: type) -> set[str]:
    """Names that its constructor takes: where that has ``**keywords``, those of its bases too."""
    names: set[str] = set()
    for maker in (vars(base)["__init__"] for base in inspect.getmro(kind)[:-1] if "__init__" in vars(base)):
        parameters = inspect.signature(maker).parameters
        names |= parameters.keys()
        if all(part.kind is not part.VAR_KEYWORD for part in parameters.values()):
            break
    return names - {"self"}
