"""Policy networks: built as nn.Modules, flattened to the vectors that strategies move."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.errors import InputError
from escalade.perturbation.address import Stream, hash64
from escalade.policies.initialisation import INITIALISATIONS
from escalade.policies.stack import Layer, Stack
from escalade.policies.torch_network import TorchNetwork, trainable

Vector = NDArray[np.float32]

_MODULES: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "selu": nn.SELU}


def build(
    policy: str,
    inputs: int,
    outputs: int,
    *,
    hidden: Sequence[int] = (64, 64),
    activation: str = "tanh",
    init: str = "normc",
    bias: bool = True,
    seed: int = 0,
) -> nn.Module:
    """A network of ``inputs`` to ``outputs``: ``linear``, ``mlp``, or what ``package.module:factory`` makes.

    A factory is called with (inputs, outputs) and returns an nn.Module.

    Raises:
        InputError: the factory cannot be found, or does not return a module.
    """
    if ":" in policy:
        return _from_factory(policy, inputs, outputs)
    sizes = [inputs, *(hidden if policy == "mlp" else ()), outputs]
    generator = torch.Generator().manual_seed(int(hash64(seed, int(Stream.INITIALISATION)) >> np.uint64(1)))
    layers: list[nn.Module] = []
    for number, (before, after) in enumerate(pairwise(sizes)):
        last = number == len(sizes) - 2
        linear = nn.Linear(before, after, bias=bias)
        with torch.no_grad():
            INITIALISATIONS[init](linear.weight, last, generator)
            if bias:
                linear.bias.zero_()
        layers += [linear] if last else [linear, _MODULES[activation]()]
    return nn.Sequential(*layers)


def shape(module: nn.Module) -> Stack | TorchNetwork:
    """How a population of this module is run: as a stack where it is one, through torch.func otherwise.

    Raises:
        InputError: it has no parameters, or some that are not float32.
    """
    parameters = list(trainable(module).values())
    if not parameters:
        raise InputError(f"policy {type(module).__name__} has no parameters to train: all are frozen or none")
    if any(parameter.dtype != torch.float32 for parameter in parameters):
        raise InputError(f"policy {type(module).__name__} must have float32 parameters: call .float() on it")
    layers = _linear_layers(module)
    return Stack(layers) if layers else TorchNetwork(module)


def to_vector(module: nn.Module) -> Vector:
    """The module's parameters in the order its :func:`shape` reads them, shape (dimension,)."""
    parameters = _parts(module)
    return np.asarray(torch.cat([part.detach().reshape(-1) for part in parameters]).numpy().copy())


def from_vector(module: nn.Module, vector: Vector | Tensor) -> None:
    """Write a vector of :func:`to_vector`'s order back into the module."""
    flat = torch.as_tensor(vector, dtype=torch.float32)
    parameters = _parts(module)
    sizes = [part.numel() for part in parameters]
    with torch.no_grad():
        for part, values in zip(parameters, torch.split(flat, sizes), strict=True):
            part.copy_(values.view_as(part))


def _parts(module: nn.Module) -> list[Tensor]:
    """What the flat vector is made of, in order."""
    return _linears(module) if _linear_layers(module) else list(trainable(module).values())


def _linears(module: nn.Module) -> list[Tensor]:
    """Weights (transposed views) and biases, in the order of :class:`Stack`."""
    parts: list[Tensor] = []
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            parts += [layer.weight.T] if layer.bias is None else [layer.weight.T, layer.bias]
    return parts


def _linear_layers(module: nn.Module) -> tuple[Layer, ...]:
    """The layers of a plain stack; empty when the module is anything else."""
    parts = list(module) if isinstance(module, nn.Sequential) else [module]
    layers: list[Layer] = []
    names = {kind: name for name, kind in _MODULES.items()}
    for part in parts:
        if type(part) is nn.Linear:
            layers.append(Layer(part.in_features, part.out_features, part.bias is not None, None))
        elif type(part) in names and layers and layers[-1].activation is None and _standard(part):
            before = layers[-1]
            layers[-1] = Layer(before.inputs, before.outputs, before.bias, names[type(part)])
        else:
            return ()
    frozen = any(not parameter.requires_grad for parameter in module.parameters())
    shared = len({id(part) for part in parts}) < len(parts)
    return () if frozen or shared else tuple(layers)


def _standard(activation: nn.Module) -> bool:
    return not isinstance(activation, nn.ELU) or activation.alpha == 1.0


def _from_factory(policy: str, inputs: int, outputs: int) -> nn.Module:
    module_name, _, name = policy.partition(":")
    try:
        factory = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as problem:
        raise InputError(f"--policy {policy}: {problem}") from None
    network = factory(inputs, outputs)
    if not isinstance(network, nn.Module):
        raise InputError(f"--policy {policy} made a {type(network).__name__}, not an nn.Module")
    return network.eval()
