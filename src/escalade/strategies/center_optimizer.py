"""The base of the optimisers that strategies step their centre with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from escalade.errors import InputError
from escalade.storage.tensors import with_prefix
from escalade.support.numbers import real_number

Pieces = Iterable[tuple[slice, Tensor]]
"""A vector that comes piece by piece: stretches of it, and the numbers there."""

PREFIX = "optimizer."
"""The beginning of its names in a strategy's state."""


class CenterOptimizer:
    """Moves one vector, the centre, along a direction of descent.

    Args:
        params: one tensor, the centre, shape (dimension,); :meth:`step` writes to it in place.
        lr: the step size of a strategy that is given none.
        memory: names of what it remembers, a tensor of the centre's shape each; zero at first.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, memory: Iterable[str] = ()) -> None:
        (self.center,) = params
        self.lr = real_number(lr, "the optimizer's lr")
        self.memory: dict[str, Tensor] = {name: torch.zeros_like(self.center) for name in memory}

    def step(self, descent: Tensor, lr: float) -> None:
        """Move the centre; here by :meth:`step_by_pieces`, as one piece. A class writes one of the two.

        Args:
            descent: what gradient descent subtracts, shape (dimension,); it may be written to.
            lr: the step size.
        """
        self.step_by_pieces([(slice(None), descent)], lr)

    def step_by_pieces(self, pieces: Pieces, lr: float) -> None:
        """Move the centre along a descent that comes in pieces; here by :meth:`step`, as a whole.

        Args:
            pieces: stretches of the vector, which together are all of it, and the descent there; each comes
                before the centre moves in its stretch, and may be written to.
            lr: the step size.
        """
        (place, whole), *others = pieces
        if others:
            parts, whole = [(place, whole), *others], torch.empty_like(self.center)
            for place, part in parts:
                whole[place] = part
        self.step(whole, lr)

    def state_dict(self) -> dict[str, Tensor | int | float]:
        """Copies of what it remembers, under the keys ``optimizer.*``."""
        return {PREFIX + name: value.clone() for name, value in self.memory.items()}

    def load_state_dict(self, state: Mapping[str, Tensor | int | float]) -> None:
        """Take over what :meth:`state_dict` gave; other keys in ``state`` are left alone.

        Raises:
            InputError: another optimiser saved it.
        """
        saved = with_prefix(PREFIX, state)
        if saved.keys() != self.memory.keys():
            raise InputError(
                "the saved state is that of another optimizer: go on with the one it was saved with"
            )
        for name, value in self.memory.items():
            value.copy_(torch.as_tensor(saved[name]))
