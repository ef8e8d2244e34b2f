"""Any nn.Module as a population: one vmapped call a step through torch.func."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from escalade.errors import InputError
from escalade.support.exact import one_thread

Vector = NDArray[np.float32]

_BLOCK = 32  # members a vmapped call holds, always (of large modules as many as there is room for)


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that training moves: those with ``requires_grad``, tied ones once."""
    return {name: part for name, part in module.named_parameters() if part.requires_grad}


@dataclass(frozen=True)
class TorchNetwork:
    """A module whose trainable parameters, in the order of ``parameters()``, are the flat vector."""

    module: nn.Module

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in trainable(self.module).values())

    def forward(self, rows: int) -> TorchForward:
        """Room for ``rows`` members."""
        return TorchForward(self.module, self.dimension, rows)

    def check(self, inputs: int, outputs: int) -> None:
        """Try one forward pass.

        Raises:
            InputError: the module fails, or gives another number of outputs.
        """
        try:
            with one_thread():
                given = self.forward(1)(np.zeros((1, inputs), dtype=np.float32)).shape
        except Exception as problem:
            raise InputError(f"policy fails on a batch of {inputs} numbers: {problem}") from problem
        if given != (1, outputs):
            raise InputError(f"policy must give {outputs} numbers for one observation, not shape {given[1:]}")


class TorchForward:
    """The forward pass of up to ``rows`` members, in blocks of one fixed size.

    Kernels may choose their way by the size of a batch. Every call here has the same size, filled
    up with idle members where there are too few, so the batch around a member changes nothing.
    """

    def __init__(self, module: nn.Module, dimension: int, rows: int) -> None:
        torch.set_num_threads(1)
        self._block = block = min(_BLOCK, rows)
        blocks = -(-rows // block)
        self._parameters: Vector = np.zeros((blocks * block, dimension), dtype=np.float32)
        # A copy on the same device: moving it to "meta" would untie parameters that two layers share.
        shapes = [(name, part.shape) for name, part in trainable(module).items()]
        self._skeleton = module = copy.deepcopy(module).eval().requires_grad_(False)
        _, self._buffers = stack_module_state([module])
        flat, self._parts, start = torch.from_numpy(self._parameters), [], 0
        for part in torch.split(flat, block):
            start, named = 0, {}
            for name, shape in shapes:
                end = start + shape.numel()
                named[name] = part[:, start:end].view(block, *shape)
                start = end
            self._parts.append(named)
        buffers_axis = dict.fromkeys(self._buffers, None)
        self._buffers = {name: value[0] for name, value in self._buffers.items()}
        self._call = vmap(self._one, in_dims=(0, buffers_axis or None, 0))

    def __call__(self, observations: Vector) -> Vector:
        """Outputs (k, outputs) of the first k members for observations (k, inputs)."""
        count = len(observations)
        size = self._block
        padded = np.zeros((-(-count // size) * size, observations.shape[1]), dtype=np.float32)
        padded[:count] = observations
        with torch.no_grad():
            outputs = [
                self._call(named, self._buffers, block)
                for named, block in zip(
                    self._parts, torch.split(torch.from_numpy(padded), size), strict=False
                )
            ]
        return np.asarray(torch.cat(outputs)[:count].numpy())

    def load(self, row: int, parameters: Vector) -> None:
        """Give the member in ``row`` its parameters, shape (dimension,)."""
        self._parameters[row] = parameters

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given members, in order, to the front."""
        self._parameters[: len(rows)] = self._parameters[rows]

    def _one(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], observation: Tensor) -> Tensor:
        output: Tensor = functional_call(self._skeleton, (parameters, buffers), (observation[None],))
        return output[0]
