"""Forms and defaults of options in words, for ``--help`` and for errors."""

from __future__ import annotations

from typing import Any, get_origin

from escalade.config.options import HINTS, OPTIONS
from escalade.config.types import alternatives


def form(name: str) -> str:
    """The form that its value is written in, such as ``N`` or ``{tanh,relu}``."""
    given: str | None = OPTIONS[name].metadata["form"]
    choices = OPTIONS[name].metadata["choices"]
    if given or choices:
        return given or "{" + ",".join(choices) + "}"
    kinds = [part for part in alternatives(HINTS[name]) if part is not type(None)]
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


_FORMS: dict[Any, str] = {int: "N", float: "X", str: "NAME", tuple: "N,N,...", dict: "JSON", bool: ""}
