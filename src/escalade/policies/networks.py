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
from escalade.policies.layout import Layout, Vector
from escalade.policies.stack import Layer, Stack
from escalade.policies.torch_network import TorchNetwork
from escalade.support.imports import import_named

_IN_NUMPY = (torch.float16, torch.float32, torch.float64)
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


def batched_network(module: nn.Module) -> Stack | TorchNetwork:
    """What runs a population of this module: a stack where it is plain layers, torch.func otherwise.

    Raises:
        InputError: it has no parameters to evolve, or some that are not float32.
    """
    layout = layout_of(module)
    if any(part.dtype != torch.float32 for part in layout.parts):
        raise InputError(f"policy {type(module).__name__} must have float32 parameters: call .float() on it")
    layers = _plain_layers(module)
    return Stack(layers) if layers else TorchNetwork(module)


def layout_of(module: nn.Module) -> Layout:
    """How the module's parameters lie in the vector that :func:`batched_network` takes.

    Raises:
        InputError: it has no parameters to evolve, or one that cannot be.
    """
    if not _plain_layers(module):
        return Layout(module)
    weights = [name for name, part in module.named_parameters() if part.ndim == 2]
    return Layout(module, transposed=weights)


def to_vector(module: nn.Module) -> Vector:
    """The module's evolved parameters as :func:`batched_network` takes them, shape (dimension,)."""
    return layout_of(module).to_vector(module)


def from_vector(module: nn.Module, vector: Vector | Tensor) -> None:
    """Write a vector of :func:`to_vector`'s order back into the module."""
    layout_of(module).writer(module)(vector)


def frozen_state(module: nn.Module) -> dict[str, NDArray[Any]]:
    """What the flat vector does not hold: frozen parameters and buffers, by name.

    Types that numpy lacks (bfloat16 and smaller) come as float32, which holds their numbers exactly.

    Raises:
        InputError: one of them is not an array of numbers; the message names it.
    """
    evolved = {id(parameter) for parameter in module.parameters() if parameter.requires_grad}
    state = module.state_dict(keep_vars=True)
    return {name: as_array(name, value) for name, value in state.items() if id(value) not in evolved}


def load_frozen_state(module: nn.Module, values: Mapping[str, NDArray[Any]]) -> None:
    """Give the module back what :func:`frozen_state` took from one like it.

    Raises:
        InputError: the module has other frozen parameters or buffers.
    """
    here = frozen_state(module)
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


def as_array(name: str, tensor: Any) -> NDArray[Any]:
    """The numbers of a parameter or buffer called ``name``, in memory of their own.

    Raises:
        InputError: it is not a dense array of numbers.
    """
    try:
        values = tensor.detach().cpu()
        if values.dtype.is_floating_point and values.dtype not in _IN_NUMPY:
            values = values.float()
        return np.array(values.numpy())
    except (AttributeError, NotImplementedError, RuntimeError, TypeError) as problem:
        raise InputError(f"the network's {name!r} cannot be saved: {problem}") from problem


def _plain_layers(module: nn.Module) -> tuple[Layer, ...]:
    """The layers of a plain stack; empty when the module is anything else.

    It must compute what its classes say (no hooks, no subclass, no parametrization), and every
    parameter must be one weight or one bias of one layer.
    """
    parts = list(module) if type(module) is nn.Sequential else [module]
    if any(_altered(part) for part in module.modules()):
        return ()
    layers: list[Layer] = []
    own: list[Tensor] = []
    names = {kind: name for name, kind in _MODULES.items()}
    for part in parts:
        if type(part) is nn.Linear:
            layers.append(Layer(part.in_features, part.out_features, part.bias is not None, None))
            own += [part.weight] if part.bias is None else [part.weight, part.bias]
        elif type(part) in names and layers and layers[-1].activation is None and _standard(part):
            before = layers[-1]
            layers[-1] = Layer(before.inputs, before.outputs, before.bias, names[type(part)])
        else:
            return ()
    # A tied or shared parameter is listed once here and twice above; others belong to no layer.
    parameters = [id(parameter) for parameter in module.parameters() if parameter.requires_grad]
    return tuple(layers) if parameters == [id(part) for part in own] else ()


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
