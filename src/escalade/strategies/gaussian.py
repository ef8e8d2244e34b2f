"""The base of strategies whose members are the centre plus scaled noise."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from torch import Tensor

from escalade.perturbation import GaussianPopulation
from escalade.perturbation.device import DevicePopulation, device_of
from escalade.strategies.base import Fitness, Strategy
from escalade.support.arrays import tensor_of
from escalade.support.large import shared_copy


class GaussianStrategy(Strategy):
    """A strategy whose members are the centre plus scaled noise.

    With ``antithetic``, members 2k and 2k + 1 are a mirrored pair: the same noise, added and subtracted.

    Its arguments, and the errors that it raises, are those of :class:`Strategy`.
    """

    antithetic = True

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
        """``sum_k weights[k] * noise_k`` over this generation's distinct perturbations."""
        members = self.sample()
        return tensor_of(members.draws.weighted_sum(weights, members.dtype))


def differences(values: Fitness) -> Fitness:
    """Mirrored pairs' values subtracted, shape (pairs,): what weighs a pair's noise in a sum."""
    return values[0::2] - values[1::2]


def sums(values: Fitness) -> Fitness:
    """Mirrored pairs' values added, shape (pairs,): what weighs the square of a pair's noise."""
    return np.asarray(values.reshape(-1, 2).sum(axis=1))
