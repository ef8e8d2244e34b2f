"""Parsing of a strategy with options, such as ``ars:top_directions=8``, and layers of options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from escalade.errors import InputError
from escalade.strategies.registry import DEFAULT, STRATEGIES
from escalade.support.registry import check_named


def split_strategy(values: Mapping[str, Any]) -> dict[str, Any]:
    """Move the options in the text of ``strategy`` into ``strategy_options``.

    A class of the user's own has the form ``package.module:Class`` or ``package.module:Class:OPTION=VALUE``.

    Raises:
        InputError: there is no such strategy, or its options are not of the form ``OPTION=VALUE``.
    """
    text = values.get("strategy")
    name, _, assignments = str(text).partition(":")
    own, colon, further = assignments.partition(":")
    if colon and "=" not in own and name not in STRATEGIES:
        name, assignments = f"{name}:{own}", further
    elif "=" in assignments:
        check_named("strategy", name, STRATEGIES)
    else:
        return dict(values)
    parsed = {}
    for assignment in assignments.split(","):
        option, _, value = assignment.partition("=")
        if not option.strip().isidentifier() or not value.strip():
            raise InputError(f"`strategy` {text} must be written as {name}:OPTION=VALUE,OPTION=VALUE")
        parsed[option.strip()] = value_of(value.strip())
    return {**values, "strategy": name, "strategy_options": values.get("strategy_options", {}) | parsed}


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge layers of options; later layers override, and a different strategy drops ``strategy_options``."""
    found: dict[str, Any] = {}
    for layer in layers:
        before = found.get("strategy", DEFAULT)
        kept = found.get("strategy_options", {}) if layer.get("strategy", before) == before else {}
        own = kept | layer.get("strategy_options", {})
        found |= layer
        if own or "strategy_options" in found:
            found["strategy_options"] = own
    return found


def value_of(text: str) -> Any:
    """Parse the text of an option as a number, true, false or none; anything else stays text."""
    if text.lower() == "none":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
