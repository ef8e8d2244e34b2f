"""Conversion of plain torch modules to stacks of layers for a population."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from operator import attrgetter
from typing import Any, Final, NamedTuple

from torch import Tensor, nn

from escalade.errors import InputError
from escalade.policies.activations import ACTIVATIONS
from escalade.policies.modules import Chain, Products, VirtualBatchNorm
from escalade.policies.population.cells import CellOperation
from escalade.policies.population.convolution import MaxPoolOperation, Windows, convolution
from escalade.policies.population.layers import (
    FlattenOperation,
    Layer,
    ProductsOperation,
    Shape,
    product_count,
)
from escalade.policies.population.product import product
from escalade.policies.population.stack import Stack
from escalade.policies.population.virtual_batch import VirtualBatchNormOperation

_NAMES: Final[dict[type[nn.Module], str]] = {entry.load(): name for name, entry in ACTIVATIONS.items()}


class Piece(NamedTuple):
    """The module of a layer, and the activation after it."""

    module: nn.Module
    activation: str | None = None


def plain_pieces(module: nn.Module) -> tuple[Piece, ...]:
    """Return the layers of a plain stack, or an empty tuple for any other module.

    A plain stack has no hooks, subclasses or parametrizations, and every parameter belongs to exactly one
    layer.
    """
    # A subclass of nn.Sequential may call its parts in a different way.
    sequence: Any = module
    parts: list[nn.Module] = list(sequence) if type(module) in (nn.Sequential, Chain) else [module]
    if any(_altered(part) for part in module.modules()):
        return ()
    pieces: list[Piece] = []
    for part in parts:
        kind = type(part)
        if kind in LAYERS and (type(module) is Chain or kind not in _IN_CHAINS) and LAYERS[kind].plain(part):
            pieces.append(Piece(part))
        elif kind in _NAMES and pieces and _takes(pieces[-1], part):
            pieces[-1] = Piece(pieces[-1].module, _NAMES[kind])
        else:
            return ()
    own: list[Tensor] = [parameter for piece in pieces for parameter in piece.module.parameters()]
    # A tied parameter is listed once here but twice above; a parameter outside the layers only here.
    parameters = [id(parameter) for parameter in module.parameters() if parameter.requires_grad]
    return tuple(pieces) if parameters == [id(part) for part in own] else ()


def stack_of(module: nn.Module, pieces: tuple[Piece, ...], shape: tuple[int, ...] | None) -> Stack:
    """Return a stack that computes the same as the module.

    Args:
        module: the module.
        pieces: its pieces from :func:`plain_pieces`.
        shape: shape of one observation, (size,) or (C, H, W); None means the input shape of the first layer.

    Raises:
        InputError: a layer does not fit its input.
    """
    here: Shape = shape or ()
    layers: list[Layer] = []
    for piece in pieces:
        kind = LAYERS[type(piece.module)]
        if kind.features is not None:
            takes = (kind.features(piece.module),)
            if not layers and len(here) != 1:
                here = takes  # the shape is unknown, or images are flattened to vectors
            _check_fits(here == takes, piece.module, here)
        layer = kind.layer(piece, here)
        if layer is not None:
            layers.append(layer)
            here = layer.outputs
    seen = module.reference_seen if isinstance(module, Chain) else None
    return Stack(tuple(layers), None if seen is None else seen.numpy())


def _altered(module: nn.Module) -> bool:
    """Return whether the module has hooks or a replaced ``forward``."""
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


def _takes(piece: Piece, activation: Any) -> bool:
    """Return whether this activation, with default settings, can be merged into the layer."""
    usual = not isinstance(activation, nn.ELU) or activation.alpha == 1.0
    takes = isinstance(piece.module, nn.Linear | nn.Conv2d | VirtualBatchNorm)
    return usual and takes and piece.activation is None


def _linear(piece: Piece, shape: Shape) -> Layer:
    part: Any = piece.module
    units = part.out_features
    biases = [] if part.bias is None else [(units,)]
    operation = partial(product, activation=piece.activation)
    return Layer(shape, (units,), operation, [(part.in_features, units), *biases])


def _convolution(piece: Piece, shape: Shape) -> Layer:
    part: Any = piece.module
    filters = part.out_channels
    windows = _windows(part, shape, part.in_channels)
    biases = [] if part.bias is None else [(filters,)]
    operation = partial(convolution, windows, activation=piece.activation)
    return Layer(shape, (filters, *windows.places), operation, [tuple(part.weight.shape), *biases])


def _pool(piece: Piece, shape: Shape) -> Layer:
    windows = _windows(piece.module, shape, *shape[:1])
    return Layer(shape, (shape[0], *windows.places), partial(MaxPoolOperation, windows))


def _flatten(piece: Piece, shape: Shape) -> Layer | None:
    return None if len(shape) < 2 else Layer(shape, (prod(shape),), FlattenOperation)


def _products(piece: Piece, shape: Shape) -> Layer:
    (features,) = shape
    return Layer(shape, (product_count(features),), partial(ProductsOperation, features))


def _cell(piece: Piece, shape: Shape) -> Layer:
    part: Any = piece.module
    kind, units = "gru" if isinstance(part, nn.GRUCell) else "lstm", part.hidden_size
    width = len(part.weight_ih)
    biases = [(width,), (width,)] if part.bias else []
    shapes = [(part.input_size, width), (units, width), *biases]
    return Layer(shape, (units,), partial(CellOperation, kind), shapes)


def _virtual_batch(piece: Piece, shape: Shape) -> Layer:
    part: Any = piece.module
    channels = tuple(part.bias.shape)
    _check_fits(shape[:1] == channels, part, shape)
    operation = partial(VirtualBatchNormOperation, shape, activation=piece.activation)
    return Layer(shape, shape, operation, [channels])


def _plain_convolution(part: Any) -> bool:
    plain = part.groups == 1 and tuple(part.dilation) == (1, 1) and part.padding_mode == "zeros"
    return plain and not isinstance(part.padding, str)


def _plain_pool(part: Any) -> bool:
    plain = _pair(part.padding) == (0, 0) and _pair(part.dilation) == (1, 1)
    return plain and not (part.ceil_mode or part.return_indices)


class Kind(NamedTuple):
    """Rule by which a class of modules becomes a layer."""

    layer: Callable[[Piece, Shape], Layer | None]
    """Function that returns the layer for an input shape, or None if the module does nothing."""
    plain: Callable[[Any], bool] = lambda part: True
    """Function that returns whether the layer computes the same as this module."""
    features: Callable[[Any], int] | None = None
    """Function that returns the length of its input vectors; a first layer gets images as vectors."""


LAYERS: Final[dict[type[nn.Module], Kind]] = {
    nn.Linear: Kind(_linear, features=attrgetter("in_features")),
    nn.Conv2d: Kind(_convolution, _plain_convolution),
    nn.MaxPool2d: Kind(_pool, _plain_pool),
    nn.Flatten: Kind(_flatten, lambda part: (part.start_dim, part.end_dim) == (1, -1)),
    Products: Kind(_products, features=attrgetter("features")),
    nn.GRUCell: Kind(_cell, features=attrgetter("input_size")),
    nn.LSTMCell: Kind(_cell, features=attrgetter("input_size")),
    VirtualBatchNorm: Kind(_virtual_batch),
}
_IN_CHAINS: Final = (nn.GRUCell, nn.LSTMCell, VirtualBatchNorm)
"""Modules with a state, which only a Chain carries."""


def _windows(part: Any, shape: Shape, *channels: int) -> Windows:
    """Return the windows of a convolution or pooling over images of ``shape``.

    Raises:
        InputError: the shape is not that of images, has different channels, or is too small.
    """
    _check_fits(len(shape) == 3 and shape[:1] == channels, part, shape)
    windows = Windows(shape, _pair(part.kernel_size), _pair(part.stride), _pair(part.padding))
    _check_fits(min(windows.places) > 0, part, shape)
    return windows


def _check_fits(fits: bool, part: nn.Module, shape: Shape) -> None:
    if not fits:
        images = "images of " + " x ".join(map(str, shape))
        inputs = images if len(shape) == 3 else f"{prod(shape)} numbers"
        raise InputError(f"policy: {part} cannot take {inputs}")


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])
