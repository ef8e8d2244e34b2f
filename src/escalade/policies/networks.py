"""Policy networks: built as nn.Modules, flattened to the vectors that strategies move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.errors import InputError
from escalade.perturbation.address import Stream, hash64
from escalade.policies.initialisation import INITIALISATIONS
from escalade.policies.stack import Layer, Stack
from escalade.policies.torch_network import TorchNetwork, trainable
from escalade.support.imports import import_named

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

    A factory is called with (inputs, outputs) and returns an nn.Module. What it draws from torch's
    global generator follows from ``seed``.

    Raises:
        InputError: the factory cannot be found, fails, or does not return a module.
    """
    first = int(hash64(seed, int(Stream.INITIALISATION)) >> np.uint64(1))
    if ":" in policy:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(first)
            return _from_factory(policy, inputs, outputs)
    sizes = [inputs, *(hidden if policy == "mlp" else ()), outputs]
    generator = torch.Generator().manual_seed(first)
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


def fixed(module: nn.Module) -> dict[str, Vector]:
    """What the flat vector does not hold: frozen parameters and buffers, by name."""
    moved = {id(parameter) for parameter in trainable(module).values()}
    state = module.state_dict(keep_vars=True)
    return {name: value.detach().numpy() for name, value in state.items() if id(value) not in moved}


def set_fixed(module: nn.Module, values: Mapping[str, NDArray[Any]]) -> None:
    """Give the module back what :func:`fixed` took from one like it.

    Raises:
        InputError: the module has other frozen parameters or buffers.
    """
    here = fixed(module)
    same = {name: value.shape for name, value in here.items()} == {
        name: value.shape for name, value in values.items()
    }
    if not same:
        raise InputError(
            f"the network's frozen parameters and buffers ({', '.join(here) or 'none'}) are not those it was "
            f"trained with ({', '.join(values) or 'none'})"
        )
    tensors = {name: torch.from_numpy(value.copy()) for name, value in values.items()}
    module.load_state_dict(tensors, strict=False)


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
    parts = list(module) if type(module) is nn.Sequential else [module]
    if any(_altered(part) for part in module.modules()):
        return ()
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


def _altered(module: nn.Module) -> bool:
    """Whether calling the module does more than its class says."""
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


def _standard(activation: nn.Module) -> bool:
    return not isinstance(activation, nn.ELU) or activation.alpha == 1.0


def _from_factory(policy: str, inputs: int, outputs: int) -> nn.Module:
    module, _, name = policy.partition(":")
    factory = getattr(import_named(module, f"`policy` {policy}"), name, None)
    if not callable(factory):
        raise InputError(f"`policy` {policy}: module {module!r} has no function {name!r}")
    try:
        network = factory(inputs, outputs)
    except Exception as problem:  # whatever the user's code raises
        raise InputError(
            f"`policy` {policy}: {name}({inputs}, {outputs}) raised {type(problem).__name__}: {problem}"
        ) from problem
    if not isinstance(network, nn.Module):
        raise InputError(f"`policy` {policy} made a {type(network).__name__}, not an nn.Module")
    return network.eval()
