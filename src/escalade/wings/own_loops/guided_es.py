"""Guided ES: evolution strategies with surrogate gradients.

Maheswaranathan, Metz, Tucker, Choi and Sohl-Dickstein 2019, "Guided evolutionary strategies: augmenting
random search with surrogate gradients", ICML, arXiv 1806.10230, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import GaussianPopulation, Stream, seeds
from escalade.strategies.descent import Descent
from escalade.strategies.openai_es import OpenAIES
from escalade.strategies.schedules import Rate
from escalade.strategies.tensors import Start, as_tensor
from escalade.support.generators import generators_seeded
from escalade.support.numbers import real_number, whole_number
from escalade.wings.own_loops.guided_noise import GuidedNoise, orthonormal

Surrogate = Callable[[Tensor], ArrayLike | Tensor]
"""Function from a copy of the center, shape (dimension,), to a vector of the same shape."""


class GuidedES(OpenAIES):
    """OpenAI-ES with noise that is larger along surrogate gradients.

    A surrogate gradient is any vector that correlates with the gradient of the fitness, even if it is biased:
    the gradient of a different loss, of a relaxed or truncated model, or of a straight-through estimator. Its
    sign and its length do not matter. The last ``guides`` surrogate gradients span a subspace U, which
    contains a share ``1 - alpha`` of the variance of the noise:

        ``noise ~ N(0, alpha * I + (1 - alpha) * dimension / k * U U')``

    This is the paper's equation 3, times ``dimension``, so that members are as far from the center as those
    of OpenAI-ES with the same sigma. k is the number of linearly independent surrogate gradients, which is
    below ``guides`` in the first generations. The gradient is estimated from this noise as in OpenAI-ES; the
    paper's factor ``beta`` is part of ``lr``.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, an even number (two per direction).
        sigma: standard deviation of the noise before it is stretched: a number, a schedule or its text.
        surrogate: function that returns the surrogate gradient, shape (dimension,). It is called once per
            generation with a copy of the center, in the thread of :meth:`ask`, with gradients enabled and the
            global generators seeded for the generation.
        guides: number of surrogate gradients that span the subspace (k in the paper). With few, each one gets
            so much of the noise that all other directions are drowned out.
        alpha: share of the variance in all directions, above 0; 1 is OpenAI-ES.
        shaping: ``centered-ranks``, ``z-score``, ``nes``, ``sign`` or ``raw`` (fitness minus its mean).
        **descent: settings of the optimizer, and common settings, of :class:`DescentStrategy`.

    Raises:
        InputError: an argument is invalid, or the surrogate did not return a finite vector of the center's
            shape; the message names it.

    Examples:
        >>> import torch
        >>> target = torch.linspace(-1, 1, 1000)
        >>> def surrogate(center):  # half of it is correct
        ...     return torch.where(torch.arange(1000) % 2 == 0, center - target, torch.randn(1000))
        >>> es = GuidedES(torch.zeros(1000), 20, 0.01, surrogate=surrogate, lr=0.02)
        >>> for _ in range(100):
        ...     es.tell(-((es.ask() - target) ** 2).sum(dim=1))
        >>> bool(((es.center - target) ** 2).sum() < 0.6 * (target**2).sum())
        True
    """

    adapted = ("gradients", "guided")
    low_rank = False

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: Rate = 0.1,
        *,
        surrogate: Surrogate,
        guides: int = 10,
        alpha: float = 0.5,
        shaping: str = "centered-ranks",
        **descent: Unpack[Descent],
    ) -> None:
        super().__init__(x0, population, sigma, shaping=shaping, **descent)
        if not callable(surrogate):
            raise InputError(f"surrogate must be a function of the center, not {surrogate!r}")
        self.surrogate = surrogate
        self.guides, self.alpha = whole_number(guides, "guides", 1), real_number(alpha, "alpha")
        if not 0 < self.alpha <= 1:
            raise InputError(f"alpha {alpha} must be above 0 and at most 1")
        shape, dtype = (self.guides, self.dimension), self.center.numpy().dtype
        self.gradients: NDArray[np.floating] = np.zeros(shape, dtype)
        """Last surrogate gradients, newest last, shape (guides, dimension); initially zeros."""
        self.guided = 0  # generation of the newest one, plus 1

    def members(self) -> GaussianPopulation:
        if self.guided != self.generation + 1:
            self.gradients = np.vstack([self.gradients[1:], self._surrogate_gradient()])
            self.guided = self.generation + 1
        basis = orthonormal(self.gradients).astype(self.gradients.dtype)
        return replace(super().members(), source=GuidedNoise(self.perturbation, basis, self.alpha))

    def _surrogate_gradient(self) -> NDArray[np.floating]:
        """Return the surrogate gradient of this generation.

        Raises:
            InputError: it has a wrong shape or is not finite.
        """
        seed = int(seeds(self.seed, Stream.STRATEGY, self.generation))
        with generators_seeded(seed), torch.enable_grad():
            returned = self.surrogate(self.center.clone())
        gradient = as_tensor(returned, "the surrogate gradient").to(self.center)
        if gradient.shape != self.center.shape or not bool(gradient.isfinite().all()):
            raise InputError(
                f"the surrogate gradient of generation {self.generation + 1} must be {self.dimension} finite "
                f"numbers, one per parameter, not {returned!r:.100}"
            )
        return np.array(gradient.numpy())
