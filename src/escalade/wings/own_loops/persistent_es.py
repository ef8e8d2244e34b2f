"""Persistent ES and noise-reuse ES: gradient estimates for long unrolls from short windows.

Vicol, Metz and Sohl-Dickstein 2021, "Unbiased gradient estimation in unrolled computation graphs with
persistent evolution strategies", arXiv 2112.13835, algorithm 2; generalized by Li, Harrison, Sohl-Dickstein,
Smith and Metz 2023, "Variance-reduced gradient estimation via noise-reuse in online evolution strategies",
arXiv 2304.12180.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.perturbation import NoiseSource
from escalade.perturbation.population import Addressed, Around, Center
from escalade.strategies.base import Fitness
from escalade.strategies.descent import Descent, DescentStrategy
from escalade.strategies.gaussian import differences
from escalade.strategies.schedules import parse
from escalade.strategies.tensors import Start
from escalade.support.numbers import real_number, whole_number

Counts = NDArray[np.int64]


class PersistentES(DescentStrategy):
    """Gradient ascent on the fitness of a long unroll, from one short window per generation.

    An unroll is a computation with an inner state, such as a training run or a simulation, divided into
    ``windows`` equal parts. In each generation, each member continues its own unroll by one window. Its
    fitness is that of this window only. The user stores the states of the members; a member starts a new
    unroll if :attr:`fresh` is true. With ``xi_k``, the sum of all noise of pair k since the start of its
    unroll, the gradient estimate is

        ``1 / (population * sigma) * sum_k (fitness_k+ - fitness_k-) * xi_k``

    Unlike an evolution strategy on single windows, it is not biased towards short-term fitness. If ``hold``
    equals ``windows``, a pair keeps its noise for a whole unroll. This is noise-reuse ES, whose gradient has
    a lower variance (Li et al. 2023). Pairs start their unrolls at different times, so that each generation
    covers all parts of an unroll.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, an even number (two per noise vector).
        sigma: standard deviation of the noise.
        windows: number of windows in an unroll.
        hold: number of windows for which a pair keeps its noise; 1 is persistent ES.
        **descent: settings of the optimizer, and common settings, of :class:`DescentStrategy`.

    Raises:
        InputError: an argument is invalid; the message names it.

    Examples:
        >>> import torch
        >>> es = PersistentES(torch.zeros(1), population=20, sigma=0.1, windows=5, lr=0.05, optimizer="sgd")
        >>> states = torch.zeros(20)
        >>> for _ in range(400):
        ...     states[torch.from_numpy(es.fresh)] = 0.0
        ...     states = 0.5 * states + es.ask()[:, 0]
        ...     es.tell(-((states - 1.0) ** 2))
        >>> 0.5 < float(es.center) < 0.65
        True
    """

    antithetic = True
    grows = False  # members have states

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: float = 0.1,
        *,
        windows: int,
        hold: int = 1,
        **descent: Unpack[Descent],
    ) -> None:
        super().__init__(x0, population, **descent)
        self._sigma = parse(real_number(sigma, "sigma"), "sigma")(0)
        self.windows, self.hold = whole_number(windows, "windows", 1), whole_number(hold, "hold", 1)
        if self.windows % self.hold:
            raise InputError(f"hold {hold} must divide windows, {windows}")

    @property
    def sigma(self) -> float:
        return self._sigma

    @property
    def ages(self) -> Counts:
        """Number of completed windows in the current unroll of each pair, shape (population / 2,)."""
        pairs = self.population_size // 2
        ahead = np.arange(pairs) * self.windows // pairs
        return np.minimum((self.generation + ahead) % self.windows, self.generation)

    @property
    def fresh(self) -> NDArray[np.bool_]:
        """True for members that start a new unroll in this generation, shape (population,)."""
        return np.repeat(self.ages == 0, 2)

    def members(self) -> HeldPopulation:
        since = self.generation - self.ages % self.hold
        center = self.center.numpy().copy()
        return HeldPopulation(center, self._sigma, self.perturbation, self.seed, tuple(since.tolist()))

    def update(self, fitness: Fitness) -> None:
        weights, ages = differences(fitness), self.ages
        total = np.zeros(self.dimension, dtype=self.center.numpy().dtype)
        for back in range(int(ages.max()) + 1):
            # Noise that pairs drew this many generations ago, within their current unroll.
            drawn = (ages >= back) & ((ages - back) % self.hold == 0)
            if drawn.any():
                draws = self.perturbation.draw(
                    self.seed, self.generation - back, len(weights), self.dimension
                )
                total += draws.weighted_sum(np.where(drawn, weights, 0.0), total.dtype)
        gradient = torch.from_numpy(total / (self.population_size * self._sigma)).to(self.center)
        self.optimizer.step(self.weight_decay * self.center - gradient, self.lr)


@dataclass(frozen=True)
class HeldPopulation(Around, Addressed):
    """Mirrored pairs, each with the noise of generation ``since``, in which it drew its noise."""

    center: Center
    scale: float
    source: NoiseSource
    seed: int
    since: tuple[int, ...]
    antithetic: bool = True

    @property
    def size(self) -> int:
        return 2 * len(self.since)

    def write(self, member: int, out: Center) -> None:
        number, mirrored = divmod(member, 2)
        draws = self.source.draw(self.seed, self.since[number], number + 1, self.dimension)
        draws.write(number, self.scale, out)
        (np.subtract if mirrored else np.add)(self.center, out, out=out)
