"""Beginning with a smaller network's weights, in the corner of a larger one's.

As ``init_from`` of es-distributed, the code of Salimans et al. 2017, but for one thing: there the rest of
the larger network's weights keeps its first, random numbers. Here the weights that lead from new units to
old ones begin at 0, so that the old outputs are at first those of the smaller network. The option
``start_from`` uses it: see docs/library.md.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor, nn

from escalade.envs.actions import ActionMap
from escalade.errors import InputError
from escalade.policies.modules import PlasticLinear, VirtualBatchNorm

_GATES = {nn.GRUCell: 3, nn.LSTMCell: 4, nn.GRU: 3, nn.LSTM: 4}
_BESIDE = (VirtualBatchNorm, nn.Embedding)
"""Modules whose units do not meet each other: those that come behind change none of the others."""
_INTO_OUTPUTS = (nn.Linear, nn.Conv2d, nn.GRUCell, nn.LSTMCell, nn.RNNCell, nn.RNNBase)
"""Modules whose weights have the units they lead to in the first dimension, those before in the second."""


def begin_with(network: nn.Module, smaller: nn.Module) -> None:
    """Write the parameters and buffers of ``smaller`` into the corner of those of ``network``.

    The two may also be of the same size: then ``network`` becomes a copy. Buffers of a module are taken over
    where all of them have the same shapes.

    Raises:
        InputError: a parameter of ``smaller`` has no place in ``network``, or is of a layer that cannot grow.
    """
    theirs: dict[str, Tensor] = dict(smaller.named_parameters())
    if theirs.keys() != dict(network.named_parameters()).keys() or _kinds(smaller) != _kinds(network):
        raise InputError(
            f"it has {_layers(smaller)}, and the new policy {_layers(network)}: give both the same layers"
        )
    modules = dict(smaller.named_modules())
    with torch.no_grad():
        for place, module in network.named_modules():
            for name, parameter in module.named_parameters(recurse=False):
                _into_corner(f"{place}.{name}".lstrip("."), module, parameter, theirs)
            if place in modules:
                _take_buffers(module, modules[place])


def check_growth(before: spaces.Space[Any], after: spaces.Space[Any], what: str) -> None:
    """Refuse spaces where the numbers of ``before`` would not be the first of those of ``after``.

    Raises:
        InputError: names both spaces; ``what`` says what they are of.
    """
    if _same_layout(before, after):
        return
    kinds = spaces.Box | spaces.Discrete | spaces.MultiBinary
    alike = type(before) is type(after) and isinstance(before, kinds)
    # Images have their channels first, so that more channels come behind those there were.
    if not alike or (before.shape or ())[1:] != (after.shape or ())[1:]:
        raise InputError(
            f"its {what} are {_short(before)}, and {_short(after)} here: only vectors may get longer, images "
            "get more channels, and choices become more"
        )


def _same_layout(one: spaces.Space[Any], other: spaces.Space[Any]) -> bool:
    """Tell whether each number of the two, flattened, means the same."""
    if type(one) is not type(other):
        return False
    flat = isinstance(one, spaces.Box) and 1 in (len(one.shape), len(other.shape or ()))
    if one.shape != other.shape and not flat:
        return False
    match one, other:
        case spaces.Dict(), spaces.Dict():
            return [*one] == [*other] and all(_same_layout(one[key], other[key]) for key in one)
        case spaces.Tuple(), spaces.Tuple():
            return len(one) == len(other) and all(map(_same_layout, one, other))
        case spaces.MultiDiscrete(), spaces.MultiDiscrete():
            return bool((one.nvec == other.nvec).all())
    return spaces.flatdim(one) == spaces.flatdim(other)


def check_actions(before: ActionMap, after: ActionMap) -> None:
    """Refuse actions that are made of outputs in another order; see :func:`check_growth`."""
    check_growth(before.space, after.space, "actions")
    if before.head != after.head:
        raise InputError(f"its `head` is {before.head}, and {after.head} here: give both the same")


def _into_corner(name: str, module: nn.Module, parameter: Tensor, theirs: dict[str, Tensor]) -> None:
    if parameter.shape == theirs[name].shape:
        parameter.copy_(theirs[name])
        return
    if not _can_grow(module):
        raise InputError(
            f"its {name} is {_sizes(theirs[name])}, and {_sizes(parameter)} here: a {type(module).__name__} "
            "cannot grow, so give it the same size"
        )
    new, old = _with_gates(module, parameter), _with_gates(module, theirs[name])
    fits = new.ndim == old.ndim and all(a >= b for a, b in zip(new.shape, old.shape, strict=True))
    if not fits or (isinstance(module, nn.Conv2d) and new.shape[3:] != old.shape[3:]):
        raise InputError(
            f"its {name} is {_sizes(theirs[name])}, which does not fit into the new policy's "
            f"{_sizes(parameter)}: every layer must be at least as large, and filters the same size"
        )
    if isinstance(module, PlasticLinear):  # coefficients, units it comes from, units it leads to
        new[:, old.shape[1] :, : old.shape[2]] = 0.0
    elif isinstance(module, _INTO_OUTPUTS) and new.ndim > 2:
        new[:, : old.shape[1], old.shape[2] :] = 0.0
    new[tuple(slice(size) for size in old.shape)] = old


def _can_grow(module: nn.Module) -> bool:
    """Tell whether units behind the old ones leave what the old ones compute as it is."""
    if isinstance(module, nn.Conv2d):
        return module.groups == 1
    if isinstance(module, nn.RNNBase):
        return not (module.bidirectional or module.proj_size)
    return isinstance(module, (*_INTO_OUTPUTS, *_BESIDE, PlasticLinear))


def _with_gates(module: nn.Module, parameter: Tensor) -> Tensor:
    """A view whose first dimension is the gates of a recurrent layer; of one gate for other layers."""
    if isinstance(module, PlasticLinear):
        return parameter
    gates = _GATES.get(type(module))
    if gates is None:
        return parameter[None]
    return parameter.view(gates, len(parameter) // gates, *parameter.shape[1:])


def _take_buffers(module: nn.Module, smaller: nn.Module) -> None:
    buffers = dict(smaller.named_buffers(recurse=False))
    shapes = {name: buffer.shape for name, buffer in module.named_buffers(recurse=False)}
    if shapes == {name: buffer.shape for name, buffer in buffers.items()}:
        for name, buffer in buffers.items():
            setattr(module, name, buffer.clone())  # not copied into: the type may be another


def _layers(network: nn.Module) -> str:
    """The classes of its innermost modules, those without parameters too."""
    inner = [type(part).__name__ for part in network.modules() if next(part.children(), None) is None]
    return ", ".join(inner[:12])


def _kinds(network: nn.Module) -> dict[str, str]:
    """The classes of modules that have parameters of their own, by place."""
    return {
        place: type(part).__name__
        for place, part in network.named_modules()
        if next(part.parameters(recurse=False), None) is not None
    }


def _sizes(parameter: Tensor) -> str:
    return " x ".join(map(str, parameter.shape)) or "one number"


def _short(space: spaces.Space[Any]) -> str:
    size = math.prod(space.shape or ()) if isinstance(space, spaces.Box) else spaces.flatdim(space)
    return f"{type(space).__name__} of {size}"
