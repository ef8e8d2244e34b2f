"""OpenAI-ES, gradient estimates with an optimizer.

Salimans, Ho, Chen, Sutskever 2017, "Evolution Strategies as a Scalable Alternative to Reinforcement
Learning", arXiv 1703.03864.
"""

from __future__ import annotations

from typing import Unpack

from escalade.strategies.base import Fitness
from escalade.strategies.descent import Descent, DescentStrategy
from escalade.strategies.gaussian import GaussianStrategy, differences
from escalade.strategies.schedules import Rate, parse_sigma
from escalade.strategies.shaping import SHAPINGS
from escalade.strategies.tensors import Start
from escalade.support.registry import named


class OpenAIES(DescentStrategy, GaussianStrategy):
    """Stochastic gradient ascent on the expected fitness of the center's Gaussian neighborhood.

    With utilities ``u_i`` of members ``center + sigma * eps_i``, the gradient is estimated as
    ``1 / (n * sigma) * sum_i u_i * eps_i`` (algorithm 1, mirrored sampling of section 2.1). The optimizer
    descends ``-gradient + weight_decay * center``.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation, even: two for each direction.
        sigma: standard deviation of the noise: a number, a schedule (a function of the generation's number,
            counted from 0), or a text for :func:`escalade.strategies.schedules.parse`.
        shaping: ``centered-ranks``, ``z-score``, ``nes``, ``sign`` or ``raw`` (fitness minus its mean).
        **descent: optimizer settings and common keywords of :class:`DescentStrategy`.

    Raises:
        InputError: an argument is invalid; the message names it.

    Examples:
        >>> import torch
        >>> es = OpenAIES(torch.zeros(3), population=50, sigma=0.1, lr=0.02)
        >>> target = torch.tensor([0.5, 0.1, -0.3])
        >>> for _ in range(200):
        ...     es.tell(-((es.ask() - target) ** 2).sum(dim=1))
        >>> bool((es.center - target).abs().max() < 0.05)
        True
    """

    low_rank = True

    def __init__(
        self,
        x0: Start,
        population: int = 64,
        sigma: Rate = 0.1,
        *,
        shaping: str = "centered-ranks",
        **descent: Unpack[Descent],
    ) -> None:
        super().__init__(x0, population, **descent)
        self.sigma_schedule = parse_sigma(sigma)
        self.shaping = named("shaping", shaping, SHAPINGS)

    def update(self, fitness: Fitness) -> None:
        noise = self.noise_sum(differences(self.shaping(fitness)))
        # In place, because a policy may be large.
        descent = noise.mul_(-1 / (self.population_size * self.sigma))  # -gradient
        descent.add_(self.center, alpha=self.weight_decay)
        self.optimizer.step(descent, self.lr)
