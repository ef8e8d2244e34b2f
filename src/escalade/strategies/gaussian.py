"""The base of strategies whose members are the centre plus noise from the table."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import GaussianPopulation, NoiseTable, weighted_noise_sum
from escalade.perturbation.population import offsets
from escalade.strategies.base import Direction, Fitness, Strategy


class GaussianStrategy(Strategy):
    """A strategy whose members are the centre plus scaled noise from the table.

    With ``antithetic``, members 2k and 2k + 1 are a mirrored pair: the same noise, added and subtracted.

    Args:
        x0: the first centre, shape (dimension,).
        population: members a generation; even where they come in mirrored pairs.
        seed: the same seed gives the same members.
        direction: what the fitness is to become, ``maximize`` or ``minimize``.
        table: noise shared with other processes; made from ``seed`` when not given.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    antithetic = True

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int,
        *,
        seed: int = 0,
        direction: Direction = "maximize",
        table: NoiseTable | None = None,
    ) -> None:
        super().__init__(x0, population, seed=seed, direction=direction, table=table)
        if self.antithetic and population % 2:
            raise InputError(
                f"population {population} is odd, but members come in mirrored pairs: use {population + 1}"
            )

    def members(self) -> GaussianPopulation:
        return GaussianPopulation(
            center=self.center.numpy().copy(),
            scale=self.scale,
            seed=self.seed,
            generation=self.generation,
            size=self.population_size,
            table_size=self.table.size,
            antithetic=self.antithetic,
        )

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where in the table this generation's distinct perturbations begin, in order."""
        distinct = self.population_size // 2 if self.antithetic else self.population_size
        return offsets(self.seed, self.generation, distinct, self.table.size, self.dimension)

    def noise_sum(self, weights: Fitness) -> Tensor:
        """``sum_k weights[k] * noise_k`` over this generation's distinct perturbations."""
        dtype = self.center.numpy().dtype
        total = weighted_noise_sum(self.table.values, self.starts, weights, self.dimension, dtype)
        return torch.from_numpy(total)


def differences(values: Fitness) -> Fitness:
    """Mirrored pairs' values subtracted, shape (pairs,): what weighs a pair's noise in a sum."""
    return values[0::2] - values[1::2]
