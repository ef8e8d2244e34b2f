"""Checks of options beyond type and bounds: of one value alone, and of several together."""

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
    """Refuse text that names no wrapper."""
    for text in texts:
        wrapping.parse(text)


def check_recorders(texts: Sequence[str]) -> None:
    """Refuse an unknown recorder."""
    for text in texts:
        if ":" not in text:
            from escalade.recorders.registry import RECORDERS

            check_named("recorder", text, RECORDERS, ", or package.module:Recorder")


def check_action_map(text: str) -> None:
    """Refuse an action map that has an unknown name in it.

    Raises:
        InputError: it has one.
    """
    for name in text.split(","):
        check_named("action_map", name, BOUNDINGS)


def check_crop(crop: Sequence[int]) -> None:
    """Refuse the part of an image that ends before it starts."""
    shown = ",".join(map(str, crop))
    if any(not 0 <= first < last for first, last in zip(crop[::2], crop[1::2], strict=True)):
        raise InputError(f"`crop` {shown}: each end must be above its start, and each start at least 0")


def check_resources(resources: Mapping[str, Any]) -> None:
    """Refuse resources of a worker that Ray would refuse, or that are none."""
    for name, amount in resources.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise InputError(f"`worker_resources` {name} {amount!r} must be a number of at least 0")
    if not any({"CPU": 1, **resources}.values()):
        raise InputError("`worker_resources` requests no resources: give a share, such as CPU 0.1")


def check_together(options: Mapping[str, Field[Any]], values: Mapping[str, Any]) -> None:
    """Check the values of all options together, once each of them is right.

    Raises:
        InputError: two do not go together; the message names them and what to do about it.
    """
    if values["novelty"] is not None and values["behaviour"] is None:
        raise InputError("`novelty` does nothing without `behaviour`")
    _check_info_keys(values["info_keys"], () if values["novelty"] is None else values["novelty"].columns)
    if ":" in values["policy"]:
        for name in readers_of(options["policy"]):
            if values[name] != options[name].default:
                raise InputError(
                    f"`{name}` does nothing with `policy` {values['policy']}, which is given inputs and "
                    "outputs: leave it out"
                )


def _check_info_keys(keys: Sequence[str], further: Collection[str]) -> None:
    if not keys:
        return
    from escalade.recorders import COLUMNS, info_columns

    taken = [*COLUMNS, *further]
    for key in keys:
        if not set(taken).isdisjoint(info_columns([key])):
            raise InputError(f"`info_keys` {key}: there is a column of that name already: leave it out")
        taken += info_columns([key])
