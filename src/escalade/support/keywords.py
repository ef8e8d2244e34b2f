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
    parameters = parameters_of(factory)
    if isinstance(factory, type):
        return {*parameters} - {"self"}
    if any(part.kind is part.VAR_KEYWORD for part in parameters.values()):
        return None
    return {*parameters}


def parameters_of(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Its parameters by name: of a class, the constructor's, and with ``**keywords`` there its bases' too."""
    if isinstance(factory, partial):
        return parameters_of(factory.func)
    if not isinstance(factory, type):
        return dict(inspect.signature(factory).parameters)
    found: dict[str, inspect.Parameter] = {}
    for maker in (
        vars(base)["__init__"] for base in inspect.getmro(factory)[:-1] if "__init__" in vars(base)
    ):
        parameters = inspect.signature(maker).parameters
        found = {**parameters, **found}
        if all(part.kind is not part.VAR_KEYWORD for part in parameters.values()):
            break
    return found
