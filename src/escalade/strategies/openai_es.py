"""OpenAI-ES: Salimans, Ho, Chen, Sutskever 2017, "Evolution Strategies as a Scalable Alternative
to Reinforcement Learning", arXiv 1703.03864.
"""

from __future__ import annotations

from numpy.typing import ArrayLike
from torch import Tensor

from escalade.perturbation import NoiseSource
from escalade.strategies.base import Direction, Fitness
from escalade.strategies.descent import DescentStrategy
from escalade.strategies.gaussian import GaussianStrategy, differences
from escalade.strategies.optimizers import OptimizerFactory
from escalade.strategies.schedules import Schedule, parse_sigma
from escalade.strategies.shaping import SHAPINGS
from escalade.support.registry import named


class OpenAIES(DescentStrategy, GaussianStrategy):
    """Stochastic gradient ascent on the expected fitness of the centre's Gaussian neighbourhood.

    With utilities ``u_i`` of members ``centre + sigma * eps_i``, the gradient is estimated as
    ``1 / (n * sigma) * sum_i u_i * eps_i`` (algorithm 1, mirrored sampling of section 2.1), and
    ``-gradient + weight_decay * centre`` is given to the optimiser.

    Args:
        x0: the first centre, shape (dimension,).
        population: members a generation, even: two for each direction.
        sigma: standard deviation of the noise: a number, a schedule (of the generation's number, from 0), or
            text that :func:`escalade.strategies.schedules.parse` reads.
        optimizer: ``adam``, ``sgd``, ``clipup``, or what makes a ``torch.optim`` optimiser of the
            parameters.
        lr: the optimiser's step size: a number, a schedule, or its text; its own when not given.
        momentum: of ``sgd`` and ``clipup``, in [0, 1); 0.9 when not given.
        weight_decay: pull towards zero, not negative.
        shaping: ``centered-ranks``, ``z-score``, ``nes``, ``sign`` or ``raw`` (fitness less its mean).
        seed: the same seed gives the same members.
        direction: what the fitness is to become, ``maximize`` or ``minimize``.
        perturbation: the source of the noise; a table of noise made from ``seed`` when not given.

    Raises:
        InputError: an argument is impossible; the message names it.

    Examples:
        >>> import torch
        >>> es = OpenAIES(torch.zeros(3), population=50, sigma=0.1, lr=0.02)
        >>> target = torch.tensor([0.5, 0.1, -0.3])
        >>> for _ in range(200):
        ...     es.tell(-((es.ask() - target) ** 2).sum(dim=1))
        >>> bool((es.center - target).abs().max() < 0.05)
        True
    """

    low_rank = on_device = True

    def __init__(
        self,
        x0: ArrayLike | Tensor,
        population: int = 64,
        sigma: float | str | Schedule = 0.1,
        *,
        optimizer: str | OptimizerFactory = "adam",
        lr: float | str | Schedule | None = None,
        momentum: float | None = None,
        weight_decay: float = 0.0,
        shaping: str = "centered-ranks",
        seed: int = 0,
        direction: Direction = "maximize",
        perturbation: NoiseSource | None = None,
    ) -> None:
        super().__init__(x0, population, seed=seed, direction=direction, perturbation=perturbation)
        self._sigma = parse_sigma(sigma, "sigma")
        self.shaping = named("shaping", shaping, SHAPINGS)
        self.set_optimizer(optimizer, lr, momentum, weight_decay)

    @property
    def sigma(self) -> float:
        return self._sigma(self.generation)

    def update(self, fitness: Fitness) -> None:
        utilities = self.shaping(fitness)
        factor = -1 / (self.population_size * self.sigma)
        # Piece by piece and in place, because a policy may be large: the descent is -gradient + decay.
        descent = (
            (place, noise.mul_(factor).add_(self.center[place], alpha=self.weight_decay))
            for place, noise in self.noise_pieces(differences(utilities))
        )
        self.optimizer.step_by_pieces(descent, self.lr)
