"""Checks of options beyond types and bounds, of single values and of combinations."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import Field
from typing import Any

from escalade.config.declared import readers_of
from escalade.envs import BOUNDINGS, wrapping
from escalade.errors import InputError
from escalade.support.registry import check_named


def check_wrappers(texts: Sequence[str]) -> None:
    """Refuse texts that do not name a wrapper."""
    for text in texts:
        wrapping.parse(text)


def check_recorders(texts: Sequence[str]) -> None:
    """Refuse an unknown recorder."""
    for text in texts:
        if ":" not in text:
            from escalade.recorders.registry import RECORDERS

            check_named("recorder", text, RECORDERS, ", or package.module:Recorder")


def check_action_map(text: str) -> None:
    """Refuse an action map with an unknown name.

    Raises:
        InputError: a name is unknown.
    """
    for name in text.split(","):
        check_named("action_map", name, BOUNDINGS)


def check_crop(crop: Sequence[int]) -> None:
    """Refuse a part of an image that ends before it starts."""
    shown = ",".join(map(str, crop))
    if any(not 0 <= first < last for first, last in zip(crop[::2], crop[1::2], strict=True)):
        raise InputError(f"`crop` {shown}: each end must be above its start, and each start at least 0")


def check_resources(resources: Mapping[str, Any]) -> None:
    """Refuse worker resources that are invalid in Ray or request nothing."""
    for name, amount in resources.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise InputError(f"`worker_resources` {name} {amount!r} must be a number of at least 0")
    if not any({"CPU": 1, **resources}.values()):
        raise InputError("`worker_resources` requests no resources; request a share, such as CPU 0.1")


def check_together(options: Mapping[str, Field[Any]], values: Mapping[str, Any]) -> None:
    """Check combinations of options whose single values are valid.

    Raises:
        InputError: two options exclude each other; the message names them and what to do about it.
    """
    if values["novelty"] is not None and values["behavior"] is None:
        raise InputError("`novelty` needs `behavior`; set it too")
    _check_info_keys(values["info_keys"], () if values["novelty"] is None else values["novelty"].columns)
    if ":" in values["policy"]:
        for name in readers_of(options["policy"]):
            if values[name] != options[name].default:
                raise InputError(
                    f"`{name}` has no effect with `policy` {values['policy']}, which takes only inputs and "
                    "outputs; remove it"
                )


def _check_info_keys(keys: Sequence[str], further: Collection[str]) -> None:
    if not keys:
        return
    from escalade.recorders import COLUMNS, info_columns

    taken = [*COLUMNS, *further]
    for key in keys:
        if not set(taken).isdisjoint(info_columns([key])):
            raise InputError(f"`info_keys` {key}: a column has that name already; remove it")
        taken += info_columns([key])
