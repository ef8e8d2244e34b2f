"""The first weights of a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn

_LAST = 0.01  # of the output layer: first actions are near zero, whatever the observation


def normc(weight: Tensor, last: bool, generator: torch.Generator) -> None:
    """Gaussian, each output's weights scaled to length 1, and to 0.01 in the last layer.

    The initialisation of Salimans et al. 2017's code.
    """
    weight.normal_(generator=generator)
    weight *= (_LAST if last else 1.0) / weight.norm(dim=1, keepdim=True)


def xavier(weight: Tensor, last: bool, generator: torch.Generator) -> None:
    """Uniform with variance 2 / (inputs + outputs) (Glorot and Bengio 2010, equation 16)."""
    nn.init.xavier_uniform_(weight, generator=generator)


def orthogonal(weight: Tensor, last: bool, generator: torch.Generator) -> None:
    """Orthogonal rows or columns (Saxe et al. 2014), a hundredth as large in the last layer."""
    nn.init.orthogonal_(weight, gain=_LAST if last else 1.0, generator=generator)


def zeros(weight: Tensor, last: bool, generator: torch.Generator) -> None:
    """All zero: how ARS starts its linear policies (Mania et al. 2018, algorithm 1).

    For policies without a hidden layer: with one, no single weight of it would have any effect.
    """
    weight.zero_()


INITIALISATIONS: Final[dict[str, Callable[[Tensor, bool, torch.Generator], None]]] = {
    "normc": normc,
    "xavier": xavier,
    "orthogonal": orthogonal,
    "zeros": zeros,
}
"""Each writes a weight of shape (outputs, inputs) in place."""


def initialise(
    network: nn.Module, init: Callable[[Tensor, bool, torch.Generator], None], generator: torch.Generator
) -> None:
    """Give a network its first numbers, in the order of its parameters.

    Weights follow ``init``, filters as (filters, channels * height * width); biases and buffers are 0.
    """
    weights = [name for name, parameter in network.named_parameters() if parameter.ndim > 1]
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.ndim > 1:
                init(parameter.view(len(parameter), -1), name == weights[-1], generator)
            else:
                parameter.zero_()
        for buffer in network.buffers():
            buffer.zero_()
