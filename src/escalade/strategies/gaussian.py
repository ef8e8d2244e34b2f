"""Base classes of strategies whose members are the center plus scaled noise."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import GaussianPopulation
from escalade.perturbation.device import DevicePopulation, device_of
from escalade.strategies.base import Common, Fitness, Strategy
from escalade.strategies.tensors import Start
from escalade.support.arrays import tensor_of
from escalade.support.large import shared_copy

Deviations = float | str | ArrayLike | Tensor
"""A positive number, its text, or a vector of shape (dimension,)."""


class GaussianStrategy(Strategy):
    """A strategy whose members are the center plus scaled noise.

    With ``antithetic``, members 2k and 2k + 1 are a mirrored pair: the same noise, added and subtracted.

    The arguments and errors are those of :class:`Strategy`.
    """

    antithetic = True
    draws_once = True
    on_device = True

    def members(self) -> GaussianPopulation:
        kind: Any = GaussianPopulation
        center: Any = self.center
        if device_of(self.perturbation) is None:
            center = shared_copy(center.numpy())
        else:
            kind, center = DevicePopulation, center.clone()
        made: GaussianPopulation = kind(
            center=center,
            scale=self.scale,
            source=self.perturbation,
            seed=self.seed,
            generation=self.generation,
            size=self.population_size,
            antithetic=self.antithetic,
        )
        return made

    def sample(self) -> GaussianPopulation:
        return cast("GaussianPopulation", super().sample())

    def noise_sum(self, weights: Fitness) -> Tensor:
        """Return ``sum_k weights[k] * noise_k`` over this generation's perturbations.

        A mirrored pair counts as one perturbation.
        """
        members = self.sample()
        return tensor_of(members.draws.weighted_sum(weights, members.dtype))


def differences(values: Fitness) -> Fitness:
    """Return the differences within mirrored pairs, shape (pairs,): weights of the pairs' noise in a sum."""
    return values[0::2] - values[1::2]


def sums(values: Fitness) -> Fitness:
    """Return the sums within mirrored pairs, shape (pairs,): weights of the squares of the pairs' noise."""
    return np.asarray(values.reshape(-1, 2).sum(axis=1))


class AdaptiveStrategy(GaussianStrategy):
    """A Gaussian strategy that adapts ``deviations``, one per parameter, shape (dimension,).

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation.
        sigma: initial standard deviations: a positive number, or a vector of shape (dimension,).
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    adapted: ClassVar[tuple[str, ...]] = ("deviations",)

    def __init__(
        self, x0: Start, population: int | None, sigma: Deviations, **common: Unpack[Common]
    ) -> None:
        super().__init__(x0, population, **common)
        # Always replaced, never written to: populations already returned share its memory.
        self.deviations: Tensor = first_deviations(sigma, self.center)

    @property
    def sigma(self) -> float:
        return float(self.deviations.mean())

    @property
    def scale(self) -> Any:
        return self._as_noise(self.deviations)

    def _as_noise(self, vector: Tensor) -> Any:
        """Return ``vector`` as what the noise is: an array, or a tensor of its device."""
        return vector.numpy() if device_of(self.perturbation) is None else vector

    def narrow(self, factors: Fitness) -> None:
        self.deviations = self.deviations * torch.from_numpy(factors).to(self.deviations)

    def square_sum(self, weights: Fitness, shift: Tensor | None = None) -> Tensor:
        """Return ``sum_k weights[k] * (noise_k - shift)**2`` over this generation's perturbations."""
        origin = None if shift is None else self._as_noise(shift)
        members = self.sample()
        draws: Any = members.draws
        return tensor_of(draws.weighted_square_sum(weights, origin, members.dtype))

    def moments(self, utilities: Fitness) -> tuple[Tensor, Tensor]:
        """Return ``sum_i u_i * s_i`` and ``sum_i u_i * (s_i**2 - 1)`` over all members' noise ``s_i``."""
        paired = self.antithetic
        first = differences(utilities) if paired else utilities
        second = sums(utilities) if paired else utilities
        return self.noise_sum(first), self.square_sum(second) - float(second.sum())


def first_deviations(sigma: Any, center: Tensor) -> Tensor:
    """Return ``sigma`` as a vector of the shape and type of ``center``.

    Raises:
        InputError: it is a schedule, has another shape, or is not positive and finite.
    """
    if callable(sigma) and not isinstance(sigma, Tensor):
        raise InputError("this strategy adapts sigma; pass its initial value, not a schedule")
    try:
        # torch rejects arrays with negative strides.
        value = np.ascontiguousarray(sigma) if isinstance(sigma, np.ndarray) else sigma
        values = torch.as_tensor(
            float(value) if isinstance(value, str) else value, dtype=center.dtype, device=center.device
        )
        vector = values.detach().expand(center.numel()).clone()
    except (RuntimeError, TypeError, ValueError):
        raise InputError(
            f"sigma {sigma!r} must be a number or {center.numel()} numbers: "
            "the initial value, which this strategy adapts"
        ) from None
    if not bool((torch.isfinite(vector) & (vector > 0)).all()):
        raise InputError(f"sigma {sigma!r} must be positive and finite")
    return vector
