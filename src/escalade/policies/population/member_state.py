"""States of a population's stateful module: one row per member."""

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
        first: a member's state, as an example of its structure and shapes.
        rows: number of members.
    """

    def __init__(self, first: State, rows: int) -> None:
        self._like = map_state(torch.clone, first)
        self._tensors = [part.new_zeros((rows, *part.shape)) for part in tensors_of(first)]

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the members in ``rows``, in order, to the front."""
        places = torch.from_numpy(rows)
        for tensor in self._tensors:
            tensor[: len(rows)] = tensor[places]

    def at(self, place: int | slice) -> State:
        """Return a copy of the state in one row or several."""
        found = iter(self._tensors)
        return map_state(lambda part: next(found)[place].clone(), self._like)

    def put(self, place: int | slice, state: State) -> None:
        """Set the state in one row or several.

        Raises:
            InputError: shapes or types differ from those of the first state.
        """
        held, new = [tensor[place] for tensor in self._tensors], tensors_of(state)
        batch = 1 if isinstance(place, slice) else 0
        was, now = (
            ", ".join(f"{tuple(part.shape[batch:])} of {part.dtype}" for part in parts)
            for parts in (held, new)
        )
        if was != now:
            raise InputError(
                f"a state must keep its shapes and types, but it changed from {was} to {now}; "
                "return a next state like the initial one"
            )
        for tensor, part in zip(held, new, strict=True):
            tensor.copy_(part)


def initial_state(module: nn.Module, parameters: dict[str, Tensor], seed: int) -> State:
    """Return the initial state of an episode for a member with these parameters."""
    named = {f"module.{name}": part for name, part in parameters.items()}
    return functional_call(_Begin(module), named, (seed,))


class _Begin(nn.Module):
    """Adapter that calls a module's ``initial_state`` as a forward pass, for torch.func."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, seed: int) -> State:
        return self.module.initial_state(seed)  # type: ignore[operator]
