"""The part of a policy network that rollouts need: a batched forward pass of several members."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation import NoiseSource, Population

Vector = NDArray[np.float32]


class Forward(Protocol):
    """Batched forward pass of several members; see :class:`escalade.policies.population.stack.StackForward`.

    The outputs of a row must not depend on the other rows, nor on how many there are, to the last bit.
    """

    def begin(self, center: Vector | None) -> None:
        """Begin a job, all of whose members are around ``center``; None where they are around none."""
        ...

    def load(self, row: int, population: Population, member: int, seed: int = 0) -> None:
        """Give ``row`` the parameters of ``member``, and begin an episode in it, whose seed is ``seed``."""
        ...

    def __call__(self, observations: Vector) -> Vector:
        """Outputs of the first k rows, shape (k, outputs), float32.

        Observations are (k, size), those of images (k, C, H, W); the next step writes their memory again.
        """
        ...

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the given rows, in order, to the front; the others are done."""
        ...


class Network(Protocol):
    """The shape of a policy network, which makes a batched forward pass of a population's members."""

    @property
    def dimension(self) -> int:
        """Parameters of one member."""
        ...

    def forward(self, rows: int, source: NoiseSource | None = None) -> Forward:
        """A forward pass with room for ``rows`` members whose noise is of ``source``."""
        ...
