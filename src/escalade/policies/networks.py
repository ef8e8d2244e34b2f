"""Policy networks: construction as nn.Modules, initialization, and conversion to flat vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.errors import InputError, one_line
from escalade.perturbation.address import Stream, hash64
from escalade.policies.activations import ACTIVATIONS
from escalade.policies.architectures.registry import ARCHITECTURES, Request
from escalade.policies.population.layout import Layout, Vector
from escalade.policies.population.recognition import plain_pieces, stack_of
from escalade.policies.population.stack import Stack
from escalade.policies.population.torch_network import TorchNetwork
from escalade.support.exact import cpu_by_default
from escalade.support.imports import imported

_LAST = 0.01  # scale of the output layer, so that initial actions are near zero for any observation
_IN_NUMPY = (torch.float16, torch.float32, torch.float64)


def build(
    policy: str,
    inputs: int | Sequence[int],
    outputs: int,
    *,
    hidden: Sequence[int] = (),
    activation: str = "tanh",
    init: str = "normc",
    bias: bool = True,
    seed: int = 0,
) -> nn.Module:
    """Build a network from the registry or with a factory, ``package.module:factory``.

    ``inputs`` is the length of vectors, or the shape (C, H, W) of images. A factory is called with
    (inputs, outputs) and returns an nn.Module. ``seed`` seeds torch's global generator for it.

    Raises:
        InputError: the factory cannot be found, fails, or does not return a module; or the network does
            not support such inputs.
    """
    first = int(hash64(seed, int(Stream.INITIALISATION)) >> np.uint64(1))
    shape = (inputs,) if isinstance(inputs, int) else tuple(inputs)
    if ":" in policy:
        with torch.random.fork_rng(devices=[]), cpu_by_default():
            torch.default_generator.manual_seed(first)
            return _from_factory(policy, shape[0] if len(shape) == 1 else shape, outputs)
    entry = ARCHITECTURES[policy]
    if entry.images and len(shape) != 3:
        raise InputError(f"`policy` {policy} is for images, but the observations are vectors; use mlp or gru")
    request = Request(shape, outputs, tuple(hidden), ACTIVATIONS[activation].load(), bias)
    # Torch first fills layers from its global generator, which the caller must not notice. (Creating the
    # network on the meta device instead would import sympy, half a second.)
    with torch.random.fork_rng(devices=[]), cpu_by_default():
        network: nn.Module = entry.load()(request)
    initialize(network, INITIALISATIONS[init], torch.Generator().manual_seed(first))
    return network


def batched_network(module: nn.Module, shape: tuple[int, ...] | None = None) -> Stack | TorchNetwork:
    """Return the batched version of a module for a population: a stack of plain layers, or torch.func.

    ``shape`` is the shape of one observation, (size,) or (C, H, W); convolutions need it.

    Raises:
        InputError: the module has no parameters to evolve, or some that are not float32; or a layer does not
            fit its input.
    """
    layout = layout_of(module)
    if any(part.dtype != torch.float32 for part in layout.parts):
        raise InputError(f"policy {type(module).__name__} must have float32 parameters; call .float() on it")
    pieces = plain_pieces(module)
    return stack_of(module, pieces, shape) if pieces else TorchNetwork(module)


def layout_of(module: nn.Module) -> Layout:
    """Return the positions of the module's parameters in the flat vector of :func:`batched_network`.

    Raises:
        InputError: the module has no parameters to evolve, or one that cannot evolve.
    """
    if not plain_pieces(module):
        return Layout(module)
    weights = [name for name, part in module.named_parameters() if part.ndim == 2]
    return Layout(module, transposed=weights)


def to_vector(module: nn.Module) -> Vector:
    """Return the module's evolved parameters as a vector for :func:`batched_network`, shape (dimension,)."""
    return layout_of(module).to_vector(module)


def from_vector(module: nn.Module, vector: Vector | Tensor) -> None:
    """Write a vector in the order of :func:`to_vector` into the module."""
    layout_of(module).writer(module)(vector)


def frozen_state(module: nn.Module) -> dict[str, NDArray[Any]]:
    """Return copies of the frozen parameters and buffers, which the flat vector does not hold, by name.

    Types that numpy lacks (bfloat16 and smaller) are converted to float32, which is exact.

    Raises:
        InputError: one of them is not an array of numbers; the message names it.
    """
    evolved = {id(parameter) for parameter in module.parameters() if parameter.requires_grad}
    state = module.state_dict(keep_vars=True)
    return {name: as_array(name, value) for name, value in state.items() if id(value) not in evolved}


def load_frozen_state(module: nn.Module, values: Mapping[str, NDArray[Any]]) -> None:
    """Load the arrays from :func:`frozen_state` of a module like this one.

    Raises:
        InputError: the module has different frozen parameters or buffers.
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
    """Copy the parameter or buffer ``name`` to an array.

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


def _from_factory(policy: str, inputs: int | tuple[int, ...], outputs: int) -> nn.Module:
    factory = imported(policy, f"`policy` {policy}")
    try:
        network = factory(inputs, outputs)
    except Exception as problem:  # whatever the user's code raises
        reason = one_line(problem)
        raise InputError(f"`policy` {policy}({inputs}, {outputs}) raised {reason}") from problem
    if not isinstance(network, nn.Module):
        raise InputError(f"`policy` {policy} returned a {type(network).__name__}, not an nn.Module")
    return network.eval()


def normc(weight: Tensor, last: bool, generator: torch.Generator) -> None:
    """Draw Gaussian weights; scale each output's weights to length 1, or 0.01 in the last layer.

    This is the initialization in the code of Salimans et al. 2017.
    """
    weight.normal_(generator=generator)
    weight *= (_LAST if last else 1.0) / weight.norm(dim=1, keepdim=True)


def xavier(weight: Tensor, last: bool, generator: torch.Generator) -> None:
    """Draw uniform weights of variance 2 / (inputs + outputs) (Glorot and Bengio 2010, equation 16)."""
    nn.init.xavier_uniform_(weight, generator=generator)


def orthogonal(weight: Tensor, last: bool, generator: torch.Generator) -> None:
    """Draw orthogonal rows or columns (Saxe et al. 2014), scaled by 0.01 in the last layer."""
    nn.init.orthogonal_(weight, gain=_LAST if last else 1.0, generator=generator)


def zeros(weight: Tensor, last: bool, generator: torch.Generator) -> None:
    """Set all weights to zero, as ARS does for its linear policies (Mania et al. 2018, algorithm 1).

    Only for policies without a hidden layer: with one, changing a single weight would have no effect.
    """
    weight.zero_()


INITIALISATIONS: Final[dict[str, Callable[[Tensor, bool, torch.Generator], None]]] = {
    "normc": normc,
    "xavier": xavier,
    "orthogonal": orthogonal,
    "zeros": zeros,
}
"""Functions that fill a weight of shape (outputs, inputs) in place."""


def initialize(
    network: nn.Module, init: Callable[[Tensor, bool, torch.Generator], None], generator: torch.Generator
) -> None:
    """Initialize a network, in the order of its parameters.

    ``init`` fills weights, and filters as (filters, channels * height * width). Biases and buffers are 0.
    """
    weights = [name for name, parameter in network.named_parameters() if parameter.ndim > 1]
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.ndim > 1:
                init(parameter.view(len(parameter), -1), name == weights[-1], generator)
            else:
                parameter.zero_()
        for buffer in network.buffers():
            buffer.zero_()
