"""What strategies with one adaptive standard deviation per parameter share."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import weighted_square_sum
from escalade.strategies.base import Fitness, GaussianStrategy, State, differences


class AdaptiveStrategy(GaussianStrategy):
    """A Gaussian strategy that learns ``deviations``, one per parameter, float32 (dimension,).

    ``sigma`` is their first value: a positive number, or a vector of shape (dimension,).
    """

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int,
        sigma: float | str | ArrayLike | Tensor,
        **keywords: Any,
    ) -> None:
        super().__init__(x0, population, **keywords)
        # Always replaced, never written to: populations already handed out share its memory.
        self.deviations: Tensor = first_deviations(sigma, self.dimension)

    @property
    def sigma(self) -> float:
        return float(self.deviations.mean())

    @property
    def scale(self) -> NDArray[np.float32]:
        return np.asarray(self.deviations.numpy())

    def square_sum(self, weights: Fitness, shift: Tensor | None = None) -> Tensor:
        """``sum_k weights[k] * (noise_k - shift)**2`` over this generation's distinct perturbations."""
        origin = None if shift is None else shift.numpy()
        total = weighted_square_sum(self.table.values, self.starts, weights, self.dimension, origin)
        return torch.from_numpy(total)

    def moments(self, utilities: Fitness) -> tuple[Tensor, Tensor]:
        """``sum_i u_i * s_i`` and ``sum_i u_i * (s_i**2 - 1)`` over all members' noise ``s_i``."""
        paired = self.antithetic
        first = differences(utilities) if paired else utilities
        second = utilities.reshape(-1, 2).sum(axis=1) if paired else utilities
        return self.noise_sum(first), self.square_sum(second) - float(second.sum())

    def state_dict(self) -> State:
        return super().state_dict() | {"deviations": self.deviations.clone()}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        saved = state["deviations"]
        if not isinstance(saved, Tensor) or saved.shape != self.deviations.shape:
            raise InputError(f"the saved deviations are not this strategy's {self.dimension}")
        self.deviations = saved.clone()


def first_deviations(sigma: Any, dimension: int) -> Tensor:
    """``sigma`` as a vector of shape (dimension,).

    Raises:
        InputError: it is a schedule, has another shape, or is not positive and finite.
    """
    if callable(sigma) and not isinstance(sigma, Tensor):
        raise InputError("sigma is adapted by this strategy: give its first value, not a schedule")
    try:
        values = torch.as_tensor(float(sigma) if isinstance(sigma, str) else sigma, dtype=torch.float32)
        vector = values.detach().expand(dimension).clone()
    except (RuntimeError, TypeError, ValueError):
        raise InputError(
            f"sigma {sigma!r} must be a number or {dimension} of them: this strategy adapts it from there"
        ) from None
    if not bool((torch.isfinite(vector) & (vector > 0)).all()):
        raise InputError(f"sigma {sigma!r} must be positive and finite")
    return vector


def share_ties(by_rank: Fitness, fitness: Fitness) -> Fitness:
    """Weights for each member of ``fitness``, given those of the best, second best, ... member.

    Members with equal fitness share the mean of their ranks' weights, so their order means nothing.
    """
    _, group = np.unique(-fitness, return_inverse=True)  # group 0 is the best
    totals = np.bincount(group, weights=by_rank[np.argsort(np.argsort(-fitness, kind="stable"))])
    return np.asarray((totals / np.bincount(group))[group])


def elite_weights(fitness: Fitness, elites: int) -> Fitness:
    """``1 / elites`` for the best ``elites`` members and 0 for the others, shape (n,)."""
    by_rank = np.zeros(len(fitness))
    by_rank[:elites] = 1.0 / elites
    return share_ties(by_rank, fitness)


def elite_count(elite: float, population: int) -> int:
    """How many of ``population`` members the fraction ``elite`` makes: at least two.

    Raises:
        InputError: the fraction is not in (0, 1], or makes fewer than two members.
    """
    if not 0 < elite <= 1:
        raise InputError(f"elite {elite} must be a fraction of the population, above 0 and up to 1")
    count = int(elite * population + 1e-9)  # 0.29 of 100 is 29, not 28
    if count < 2:
        raise InputError(
            f"elite {elite} of a population of {population} leaves {count}: at least 2 are needed,"
            f" so use elite {2 / population:.3g} or more"
        )
    return count
