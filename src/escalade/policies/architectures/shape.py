"""The inputs and outputs a named network is made for, and the sizes that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from escalade.errors import InputError


@dataclass(frozen=True)
class Request:
    """The shape and options a network is to have.

    Args:
        shape: of one observation, (size,) or (C, H, W).
        outputs: numbers it gives.
        hidden: sizes of hidden layers, where the network leaves them open.
        activation: the module between its layers, where the network leaves it open.
        bias: whether its layers have one, where the network leaves it open.
    """

    shape: tuple[int, ...]
    outputs: int
    hidden: tuple[int, ...]
    activation: type[nn.Module]
    bias: bool

    @property
    def inputs(self) -> int:
        """Numbers in one observation."""
        return torch.Size(self.shape).numel()


def flat_size(layers: list[nn.Module], shape: tuple[int, ...]) -> int:
    """The number of outputs that convolutions give for one image of ``shape``, (C, H, W).

    Raises:
        InputError: the image is too small for them.
    """
    try:
        with torch.device("meta"), torch.no_grad():
            made = nn.Sequential(*layers)(torch.empty(1, *shape))
    except RuntimeError:
        channels, height, width = shape
        raise InputError(f"policy: images of {channels} x {height} x {width} are too small for it") from None
    return int(made[0].numel())
