"""The states of a population's stateful module: a row a member, which moves with it."""

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
        first: a member's state, which tells the tensors that one consists of.
        rows: members.
    """

    def __init__(self, first: State, rows: int) -> None:
        self._like = map_state(torch.clone, first)
        self._tensors = [part.new_zeros((rows, *part.shape)) for part in tensors_of(first)]

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given members, in order, to the front."""
        places = torch.from_numpy(rows)
        for tensor in self._tensors:
            tensor[: len(rows)] = tensor[places]

    def at(self, place: int | slice) -> State:
        """The state of the member in a row, or of those in some rows, in memory of their own."""
        found = iter(self._tensors)
        return map_state(lambda part: next(found)[place].clone(), self._like)

    def put(self, place: int | slice, state: State) -> None:
        """Set the state of the member in a row, or of those in some rows.

        Raises:
            InputError: it has other shapes or types than the first.
        """
        held, given = [tensor[place] for tensor in self._tensors], tensors_of(state)
        batch = 1 if isinstance(place, slice) else 0
        was, now = (
            ", ".join(f"{tuple(part.shape[batch:])} of {part.dtype}" for part in parts)
            for parts in (held, given)
        )
        if was != now:
            raise InputError(f"a state must keep its shapes and types: it began as {was}, and became {now}")
        for tensor, part in zip(held, given, strict=True):
            tensor.copy_(part)


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
