"""The named networks. A new one is one file and one entry here.

Its file has a function from a :class:`escalade.policies.architectures.shape.Request` to an nn.Module, made
of layers that :mod:`escalade.policies.recognition` knows. It is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the command line's help lists the names without importing torch
    from torch import nn

    from escalade.policies.architectures.shape import Request

_MLP: Final = frozenset({"hidden", "activation", "bias"})


@dataclass(frozen=True)
class Architecture:
    """A named network, before its file is imported."""

    place: str
    """``file:function``."""
    title: str
    use: str
    options: frozenset[str] = frozenset()
    """Those of ``hidden``, ``activation`` and ``bias`` that it reads."""
    images: bool = False
    """True where it takes images only; the others flatten them."""

    def load(self) -> Callable[[Request], nn.Module]:
        """The function that makes it."""
        file, _, name = self.place.partition(":")
        maker: Callable[[Request], nn.Module] = getattr(
            importlib.import_module(f"escalade.policies.architectures.{file}"), name
        )
        return maker


ARCHITECTURES: Final[dict[str, Architecture]] = {
    "linear": Architecture("perceptron:make_linear", "one layer", "vectors", frozenset({"bias"})),
    "mlp": Architecture("perceptron:make_mlp", "multilayer perceptron", "vectors", _MLP),
    "quadratic": Architecture(
        "quadratic:make",
        "one layer, on the observation and the products of its numbers",
        "vectors",
        frozenset({"bias"}),
    ),
    "gru": Architecture("recurrent:make_gru", "a GRU cell behind plain layers", "vectors, memory", _MLP),
    "lstm": Architecture("recurrent:make_lstm", "an LSTM cell behind plain layers", "vectors, memory", _MLP),
    "hebbian": Architecture(
        "hebbian:make",
        "plastic layers: Najarro and Risi 2020",
        "vectors; weights change within the episode",
        frozenset({"hidden", "activation"}),
    ),
    "nature": Architecture("nature:make", "Mnih et al. 2015", "4 x 84 x 84", images=True),
    "openai-atari": Architecture(
        "openai_atari:make", "Salimans et al. 2017: virtual batch normalisation", "4 x 84 x 84", images=True
    ),
    "conv-lstm": Architecture(
        "conv_lstm:make", "pytorch-es: convolutions and an LSTM cell", "1 x 42 x 42, memory", images=True
    ),
    "small-cnn": Architecture(
        "small_cnn:make", "enajx/ES: a small CNN without biases", "3 x 84 x 84", images=True
    ),
}
"""The networks that ``policy`` names."""
