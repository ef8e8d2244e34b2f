"""Registry of the named networks.

A new network is one function and one entry here. The function takes a :class:`Request` and returns an
nn.Module of layers that :mod:`escalade.policies.population.recognition` supports. It is imported on first
use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from escalade.support.registry import Entry

if TYPE_CHECKING:  # a worker starts without torch
    from torch import nn


@dataclass(frozen=True)
class Request:
    """Requested shape and options of a network.

    A network ignores the options that it does not have.

    Args:
        shape: shape of one observation, (size,) or (C, H, W).
        outputs: number of outputs.
        hidden: sizes of hidden layers.
        activation: the module between layers.
        bias: True for layers with a bias.
    """

    shape: tuple[int, ...]
    outputs: int
    hidden: tuple[int, ...]
    activation: type[nn.Module]
    bias: bool

    @property
    def inputs(self) -> int:
        """Number of values in one observation."""
        return math.prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class Architecture(Entry):
    """Registry entry of a network, whose home is a function from a Request to an nn.Module."""

    use: str
    images: bool = False
    """True if the network takes images only; the others flatten images."""
    hidden: tuple[int, ...] = ()
    """Default sizes of the hidden layers."""


_HERE: Final = "escalade.policies.architectures"
_INIT: Final = frozenset({"init"})
_LINE: Final = frozenset({"bias", "init"})
_MLP: Final = _LINE | {"hidden", "activation"}
_MEMORY: Final = "vectors, memory"
CELL: Final = (64,)
"""Default size of a recurrent cell."""


def _for_vectors(
    title: str, maker: str, options: frozenset[str], hidden: tuple[int, ...] = (), use: str = "vectors"
) -> Architecture:
    return Architecture(title, f"{_HERE}.vectors:{maker}", use=use, options=options, hidden=hidden)


def _for_images(title: str, maker: str, use: str) -> Architecture:
    return Architecture(title, f"{_HERE}.images:{maker}", use=use, options=_INIT, images=True)


ARCHITECTURES: Final[dict[str, Architecture]] = {
    "linear": _for_vectors("one layer", "make_linear", _LINE),
    # 16 units are better than a linear policy on most tasks; see benchmarks/defaults.md
    "mlp": _for_vectors("multilayer perceptron", "make_mlp", _MLP, (16,)),
    "quadratic": _for_vectors(
        "one layer, on the observation and the products of its numbers", "make_quadratic", _LINE
    ),
    "gru": _for_vectors("a GRU cell behind plain layers", "make_gru", _MLP, CELL, _MEMORY),
    "lstm": _for_vectors("an LSTM cell behind plain layers", "make_lstm", _MLP, CELL, _MEMORY),
    "nature": _for_images("Mnih et al. 2015", "make_nature", "4 x 84 x 84"),
    "openai-atari": _for_images(
        "Salimans et al. 2017: virtual batch normalization", "make_openai_atari", "4 x 84 x 84"
    ),
    "conv-lstm": _for_images(
        "pytorch-es: convolutions and an LSTM cell", "make_conv_lstm", "1 x 42 x 42, memory"
    ),
    "small-cnn": _for_images("enajx/ES: a small CNN without biases", "make_small_cnn", "3 x 84 x 84"),
}
"""Networks by name, for the option ``policy``."""
