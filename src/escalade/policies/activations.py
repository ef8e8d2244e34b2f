"""Activations by name, with in-place versions for numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from escalade.support.registry import Entry

Array = NDArray[np.float32]


def _elu(x: Array) -> None:
    _exponential(x, np.float32(1.0))


def _exponential(x: Array, alpha: np.float32) -> None:
    """Compute ``max(x, 0) + alpha * (exp(min(x, 0)) - 1)`` in place: a sum, because masks are slow."""
    below = np.minimum(x, np.float32(0.0))
    np.exp(below, out=below)
    below -= np.float32(1.0)
    below *= alpha
    np.maximum(x, np.float32(0.0), out=x)
    x += below


# Constants of Klambauer et al. 2017, "Self-Normalizing Neural Networks", section 2.
_SELU_ALPHA: Final = np.float32(1.6732632423543772)
_SELU_SCALE: Final = np.float32(1.0507009873554805)


def _selu(x: Array) -> None:
    _exponential(x, _SELU_ALPHA)
    x *= _SELU_SCALE


def _tanh(x: Array) -> None:
    np.tanh(x, out=x)


def _relu(x: Array) -> None:
    np.maximum(x, 0.0, out=x)


@dataclass(frozen=True, kw_only=True)
class Activation(Entry):
    """An activation; its home is its torch module."""

    in_place: Callable[[Array], None]
    """The same function, in place, for an array."""


ACTIVATIONS: Final[dict[str, Activation]] = {
    "tanh": Activation("hyperbolic tangent", "torch.nn:Tanh", in_place=_tanh),
    "relu": Activation("rectified linear", "torch.nn:ReLU", in_place=_relu),
    "elu": Activation("exponential linear", "torch.nn:ELU", in_place=_elu),
    "selu": Activation("scaled exponential linear", "torch.nn:SELU", in_place=_selu),
}


def sigmoid(x: Array) -> None:
    """Compute ``1 / (1 + exp(-x))`` in place, with tanh, which cannot overflow."""
    x *= np.float32(0.5)
    np.tanh(x, out=x)
    x += np.float32(1.0)
    x *= np.float32(0.5)
