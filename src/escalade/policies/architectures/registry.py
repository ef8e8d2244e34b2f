"""The named networks. A new one is one function and one entry here.

The function takes a :class:`Request` and returns an nn.Module, made
of layers that :mod:`escalade.policies.population.recognition` knows. It is imported when it is asked for.
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
        return math.prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class Architecture(Entry):
    """A named network, before its file is imported; its home takes a Request and gives an nn.Module."""

    use: str
    images: bool = False
    """True where it takes images only; the others flatten them."""
    hidden: tuple[int, ...] = ()
    """Sizes of hidden layers where none are given."""


_HERE: Final = "escalade.policies.architectures"
_INIT: Final = frozenset({"init"})
_LINE: Final = frozenset({"bias", "init"})
_MLP: Final = _LINE | {"hidden", "activation"}
CELL: Final = (64,)
"""The size of a recurrent cell where none is given."""

ARCHITECTURES: Final[dict[str, Architecture]] = {
    "linear": Architecture("one layer", f"{_HERE}.vectors:make_linear", use="vectors", options=_LINE),
    "mlp": Architecture(
        "multilayer perceptron",
        f"{_HERE}.vectors:make_mlp",
        use="vectors",
        options=_MLP,
        hidden=(16,),  # more than a line on most tasks: benchmarks/defaults.md
    ),
    "quadratic": Architecture(
        "one layer, on the observation and the products of its numbers",
        f"{_HERE}.vectors:make_quadratic",
        use="vectors",
        options=_LINE,
    ),
    "gru": Architecture(
        "a GRU cell behind plain layers",
        f"{_HERE}.vectors:make_gru",
        use="vectors, memory",
        options=_MLP,
        hidden=CELL,
    ),
    "lstm": Architecture(
        "an LSTM cell behind plain layers",
        f"{_HERE}.vectors:make_lstm",
        use="vectors, memory",
        options=_MLP,
        hidden=CELL,
    ),
    "nature": Architecture(
        "Mnih et al. 2015", f"{_HERE}.images:make_nature", use="4 x 84 x 84", options=_INIT, images=True
    ),
    "openai-atari": Architecture(
        "Salimans et al. 2017: virtual batch normalisation",
        f"{_HERE}.images:make_openai_atari",
        use="4 x 84 x 84",
        options=_INIT,
        images=True,
    ),
    "conv-lstm": Architecture(
        "pytorch-es: convolutions and an LSTM cell",
        f"{_HERE}.images:make_conv_lstm",
        use="1 x 42 x 42, memory",
        options=_INIT,
        images=True,
    ),
    "small-cnn": Architecture(
        "enajx/ES: a small CNN without biases",
        f"{_HERE}.images:make_small_cnn",
        use="3 x 84 x 84",
        options=_INIT,
        images=True,
    ),
}
"""The networks that ``policy`` names."""
