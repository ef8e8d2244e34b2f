"""Forms and defaults of options in words, for ``--help`` and for errors."""

from __future__ import annotations

import os
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from escalade.config.options import OPTIONS, Config


def choices(name: str) -> tuple[str, ...]:
    """The names that the option takes; empty where it takes anything else."""
    if listed := OPTIONS[name].metadata["choices"]:
        return tuple(listed)
    literals = [part for part in _alternatives(HINTS[name]) if get_origin(part) is Literal]
    return tuple(choice for part in literals for choice in get_args(part))


def form(name: str) -> str:
    """The form that its value is written in, such as ``N`` or ``{tanh,relu}``."""
    given: str | None = OPTIONS[name].metadata["form"]
    if given or choices(name):
        return given or "{" + ",".join(choices(name)) + "}"
    kinds = [part for part in _alternatives(HINTS[name]) if part is not type(None)]
    return _FORMS[get_origin(kinds[0]) or kinds[0]]


def default(name: str) -> str:
    """The option's default, in words."""
    option = OPTIONS[name]
    if option.default is None:
        return str(option.metadata["unset"])
    if isinstance(option.default, bool):
        return "yes" if option.default else "no"
    if isinstance(option.default, tuple):
        return ",".join(map(str, option.default)) or str(option.metadata["unset"])
    return str(option.default) if isinstance(option.default, str | int | float) else "{}"


def describe(annotation: Any) -> str:
    """Describe the values of this type, for someone who gave another."""
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(get_args(annotation))
    parts = _alternatives(annotation)
    if len(parts) > 1:
        return " or ".join(describe(part) for part in parts if part not in (type(None), os.PathLike[str]))
    return _WORDS[annotation if annotation in _WORDS else get_origin(annotation)]


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


HINTS: dict[str, Any] = get_type_hints(Config)
"""The options' types."""

_FORMS: dict[Any, str] = {int: "N", float: "X", str: "NAME", tuple: "N,N,...", dict: "JSON", bool: ""}

_WORDS: dict[Any, str] = {
    tuple[str, ...]: "a list of text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "whole numbers with commas between, such as 64,64",
    dict: 'a JSON object, such as {"gravity": -5.0}',
}
