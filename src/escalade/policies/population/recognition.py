"""The modules that a population runs as a stack of layers, and the layer of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from torch import Tensor, nn

from escalade.errors import InputError
from escalade.policies.activations import ACTIVATIONS
from escalade.policies.modules import Chain, Products, VirtualBatchNorm
from escalade.policies.population.cells import Cell
from escalade.policies.population.convolution import Convolution, MaxPool
from escalade.policies.population.layers import Flatten, Layer, Linear, Shape
from escalade.policies.population.products import ProductsLayer
from escalade.policies.population.stack import Stack
from escalade.policies.population.virtual_batch import VirtualBatchNormLayer

_NAMES: Final[dict[type[nn.Module], str]] = {entry.load(): name for name, entry in ACTIVATIONS.items()}


class Piece(NamedTuple):
    """A layer's module, and the activation that follows it."""

    module: nn.Module
    activation: str | None = None


def plain_pieces(module: nn.Module) -> tuple[Piece, ...]:
    """The layers of a plain stack; empty when the module is anything else.

    It must compute what its classes say (no hooks, no subclass, no parametrization), and every
    parameter must be one parameter of one layer.
    """
    chain = isinstance(module, Chain) and _is_bare(module)
    parts = list(module) if isinstance(module, nn.Sequential) and _is_bare(module) else [module]
    if any(_altered(part) for part in module.modules()):
        return ()
    pieces: list[Piece] = []
    for part in parts:
        kind = type(part)
        if kind in LAYERS and (chain or kind not in _IN_CHAINS) and LAYERS[kind].plain(part):
            pieces.append(Piece(part))
        elif kind in _NAMES and pieces and _takes_activation(pieces[-1]) and _standard(part):
            pieces[-1] = Piece(pieces[-1].module, _NAMES[kind])
        else:
            return ()
    own: list[Tensor] = [parameter for piece in pieces for parameter in piece.module.parameters()]
    # A tied or shared parameter is listed once here and twice above; others belong to no layer.
    parameters = [id(parameter) for parameter in module.parameters() if parameter.requires_grad]
    return tuple(pieces) if parameters == [id(part) for part in own] else ()


def stack_of(module: nn.Module, pieces: tuple[Piece, ...], shape: tuple[int, ...] | None) -> Stack:
    """The stack that computes what the module does.

    Args:
        module: the module.
        pieces: what :func:`plain_pieces` found in it.
        shape: of one observation, (size,) or (C, H, W); what the first layer takes when None.

    Raises:
        InputError: a layer does not fit what it is given.
    """
    first = pieces[0].module
    flat = shape is not None and len(shape) == 3 and LAYERS[type(first)].flattens
    here: Shape | None = None if flat else shape
    layers: list[Layer] = []
    for piece in pieces:
        layer = LAYERS[type(piece.module)].layer(piece, here)
        if layer is not None:
            layers.append(layer)
            here = layer.outputs
    seen = module.reference_seen if isinstance(module, Chain) else None
    return Stack(tuple(layers), None if seen is None else seen.numpy())


def _is_bare(module: nn.Module) -> bool:
    """Return whether it is a sequence itself, and not a subclass that may call its parts in another way."""
    return type(module) in (nn.Sequential, Chain)


def _altered(module: nn.Module) -> bool:
    """Return whether calling the module does more than its class says."""
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


def _standard(activation: nn.Module) -> bool:
    return not isinstance(activation, nn.ELU) or activation.alpha == 1.0


def _takes_activation(piece: Piece) -> bool:
    return piece.activation is None and isinstance(piece.module, nn.Linear | nn.Conv2d | VirtualBatchNorm)


def _linear(piece: Piece, shape: Shape | None) -> Layer:
    part: Any = piece.module
    check_shape(part, (part.in_features,), shape)
    return Linear(part.in_features, part.out_features, part.bias is not None, piece.activation)


def _convolution(piece: Piece, shape: Shape | None) -> Layer:
    part: Any = piece.module
    seen = _image(part, shape, part.in_channels)
    rest = (part.kernel_size, part.stride, part.padding, part.bias is not None, piece.activation)
    return _of_some_size(Convolution(seen, part.out_channels, *rest))


def _pool(piece: Piece, shape: Shape | None) -> Layer:
    part: Any = piece.module
    return _of_some_size(MaxPool(_image(part, shape), _pair(part.kernel_size), _pair(part.stride)))


def _flatten(piece: Piece, shape: Shape | None) -> Layer | None:
    return None if shape is None or len(shape) == 1 else Flatten(shape)


def _products(piece: Piece, shape: Shape | None) -> Layer:
    part: Any = piece.module
    check_shape(part, (part.features,), shape)
    return ProductsLayer(part.features)


def _cell(piece: Piece, shape: Shape | None) -> Layer:
    part: Any = piece.module
    check_shape(part, (part.input_size,), shape)
    kind = "gru" if isinstance(part, nn.GRUCell) else "lstm"
    return Cell(part.input_size, part.hidden_size, kind, part.bias)


def _virtual_batch(piece: Piece, shape: Shape | None) -> Layer:
    part: Any = piece.module
    channels = len(part.bias)
    if shape is None or shape[0] != channels:
        raise InputError(f"policy: {part} takes {channels} channels, but is given {_words(shape)}")
    return VirtualBatchNormLayer(shape, piece.activation)


def _plain_convolution(part: Any) -> bool:
    plain = part.groups == 1 and tuple(part.dilation) == (1, 1) and part.padding_mode == "zeros"
    return plain and not isinstance(part.padding, str)


def _plain_pool(part: Any) -> bool:
    plain = _pair(part.padding) == (0, 0) and _pair(part.dilation) == (1, 1)
    return plain and not (part.ceil_mode or part.return_indices)


class Kind(NamedTuple):
    """The rule by which a module becomes a layer, and whether the layer computes what this module does."""

    layer: Callable[[Piece, Shape | None], Layer | None]
    plain: Callable[[Any], bool] = lambda part: True
    flattens: bool = False
    """True where images are given to it as vectors, when it is the first."""


LAYERS: Final[dict[type[nn.Module], Kind]] = {
    nn.Linear: Kind(_linear, flattens=True),
    nn.Conv2d: Kind(_convolution, _plain_convolution),
    nn.MaxPool2d: Kind(_pool, _plain_pool),
    nn.Flatten: Kind(_flatten, lambda part: (part.start_dim, part.end_dim) == (1, -1)),
    Products: Kind(_products, flattens=True),
    nn.GRUCell: Kind(_cell, flattens=True),
    nn.LSTMCell: Kind(_cell, flattens=True),
    VirtualBatchNorm: Kind(_virtual_batch),
}
_IN_CHAINS: Final = (nn.GRUCell, nn.LSTMCell, VirtualBatchNorm)
"""Elsewhere they are called without their state."""


def check_shape(part: nn.Module, takes: Shape, shape: Shape | None) -> None:
    """Refuse a layer that does not take what it is given; None is not known yet.

    Raises:
        InputError: names both shapes.
    """
    if shape is not None and shape != takes:
        raise InputError(f"policy: {part} takes {_words(takes)}, but is given {_words(shape)}")


def _image(part: nn.Module, shape: Shape | None, channels: int | None = None) -> Shape:
    if shape is None or len(shape) != 3 or channels not in (None, shape[0]):
        raise InputError(f"policy: {part} takes images of its channels, but is given {_words(shape)}")
    return shape


def _of_some_size(layer: Convolution | MaxPool) -> Layer:
    if min(layer.outputs) < 1:
        _, height, width = layer.inputs
        raise InputError(
            f"policy: images of {height} x {width} are too small for its windows of "
            f"{layer.kernel[0]} x {layer.kernel[1]}"
        )
    return layer


def _words(shape: Shape | None) -> str:
    """A shape as a person would say it."""
    if shape is None:
        return "nothing known"
    if len(shape) == 1:
        return f"{shape[0]} numbers"
    return "images of " + " x ".join(map(str, shape))


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])
