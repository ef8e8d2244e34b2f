"""Interface of policy networks in rollouts: a batched forward pass of several members."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation import NoiseSource, Population

Vector = NDArray[np.float32]


class Forward(Protocol):
    """Batched forward pass of several members; see :class:`escalade.policies.population.stack.StackForward`.

    The outputs of a row must be bit-identical for any other rows, and for any number of them.
    """

    def begin(self, center: Vector | None) -> None:
        """Begin a job whose members are all perturbations of ``center``, or share no center if it is None."""
        ...

    def load(self, row: int, population: Population, member: int, seed: int = 0) -> None:
        """Load the parameters of ``member`` into ``row``, and begin an episode there with ``seed``."""
        ...

    def __call__(self, observations: Vector) -> Vector:
        """Return the outputs of the first k rows, shape (k, outputs), float32.

        Observations have shape (k, size), images (k, C, H, W). The next step overwrites their memory.
        """
        ...

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move these rows, in order, to the front. The other rows are no longer used."""
        ...


class Network(Protocol):
    """Architecture of a policy network, which creates batched forward passes of members."""

    @property
    def dimension(self) -> int:
        """Number of parameters of one member."""
        ...

    def forward(self, rows: int, source: NoiseSource | None = None) -> Forward:
        """Return a forward pass for up to ``rows`` members whose noise comes from ``source``."""
        ...
