"""The states of a population's stateful module: a row a member, in blocks that are stepped together."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from escalade.errors import InputError
from escalade.policies.modules import State, map_state, tensors_of


class MemberState:
    """The states of ``rows`` members.

    Args:
        first: a member's state, which says of what tensors one consists.
        rows: members, a multiple of ``block``.
        block: members that are stepped together.
    """

    def __init__(self, first: State, rows: int, block: int) -> None:
        self._like = map_state(torch.clone, first)
        self._block = block
        self._tensors = [part.new_zeros((rows, *part.shape)) for part in tensors_of(first)]

    def begin(self, row: int, first: State) -> None:
        """Set the state of the member in ``row``."""
        for tensor, part in zip(self._tensors, self._checked(first, ()), strict=True):
            tensor[row] = part

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given members, in order, to the front."""
        places = torch.from_numpy(rows)
        for tensor in self._tensors:
            tensor[: len(rows)] = tensor[places]

    def of(self, row: int) -> State:
        """The state of the member in ``row``, in memory of its own."""
        found = iter(self._tensors)
        return map_state(lambda part: next(found)[row].clone(), self._like)

    def block(self, number: int) -> State:
        """The states of a block's members, in memory of their own."""
        found = iter(self._tensors)
        span = slice(number * self._block, (number + 1) * self._block)
        return map_state(lambda part: next(found)[span].clone(), self._like)

    def advance(self, number: int, state: State) -> None:
        """Set the states of a block's members."""
        span = slice(number * self._block, (number + 1) * self._block)
        for tensor, part in zip(self._tensors, self._checked(state, (self._block,)), strict=True):
            tensor[span] = part

    def _checked(self, state: State, batch: tuple[int, ...]) -> list[Tensor]:
        given = tensors_of(state)
        expected = [((*batch, *part.shape), part.dtype) for part in tensors_of(self._like)]
        if [(tuple(part.shape), part.dtype) for part in given] != expected:
            was = ", ".join(f"{tuple(part.shape)} of {part.dtype}" for part in tensors_of(self._like))
            now = ", ".join(f"{tuple(part.shape[len(batch) :])} of {part.dtype}" for part in given)
            raise InputError(f"a state must keep its shapes and types: it began as {was}, and became {now}")
        return given


def initial_state(module: nn.Module, parameters: dict[str, Tensor], seed: int) -> State:
    """Return the state that an episode of the member with these parameters begins with."""
    named = {f"module.{name}": part for name, part in parameters.items()}
    return functional_call(_Begin(module), named, (seed,))


class _Begin(nn.Module):
    """Calls a module's ``initial_state`` where torch.func expects a forward pass."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, seed: int) -> State:
        return self.module.initial_state(seed)  # type: ignore[operator]
