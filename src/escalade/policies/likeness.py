"""The classes that a module is made of: they tell it from another with as many parameters."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from escalade.errors import InputError

_SHOWN = 20  # classes in a message


def layers_of(module: nn.Module) -> list[str]:
    """The names of the classes of a module and of its parts, in the order that torch has them.

    Torch's lazy ones count as what their first call makes of them.
    """
    return [type(part).__name__.removeprefix("Lazy") for part in module.modules()]


def check_layers(module: nn.Module, trained: Sequence[str] | None) -> None:
    """Compare a module with the :func:`layers_of` the one that was trained, where those are known.

    Raises:
        InputError: it is of other classes: with the same weights it would be another policy.
    """
    found = layers_of(module)
    if trained is not None and found != list(trained):
        raise InputError(
            f"a module of {_said(trained)} was trained, and `network` is one of {_said(found)}: "
            "give one like it"
        )


def _said(layers: Sequence[str]) -> str:
    return ", ".join(layers[:_SHOWN]) + ", ..." * (len(layers) > _SHOWN)
