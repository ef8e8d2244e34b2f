"""A generation as recorders and callbacks see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.recorders import Row, of_returns
from escalade.strategies import Strategy
from escalade.strategies.shaping import finite_fitness, usable_number
from escalade.training.objective import Evaluation, Outcome
from escalade.training.progress import Progress


def make_row(
    outcome: Outcome,
    judged: Evaluation | None,
    progress: Progress,
    strategy: Strategy,
    *,
    scales: tuple[float, float],
    rank: int | None,
    seconds: float,
) -> Row:
    """Describe a generation that has been counted.

    Args:
        outcome: its measurement.
        judged: the evaluation that counts, if there was one.
        progress: of the run, with this generation.
        strategy: after its update.
        scales: sigma and lr that the generation had.
        rank: of the center among the members, if they can be compared.
        seconds: that the generation took.
    """
    total, steps = progress.total, outcome.env_steps
    return Row(
        generation=progress.rows,
        episodes=total.episodes,
        env_steps=None if steps is None else total.env_steps,
        seconds=round(total.seconds, 4),
        episode_length_mean=None if steps is None else steps / len(outcome.returns),
        eval_return_mean=None if judged is None else judged.mean,
        unperturbed_rank=rank,
        sigma=scales[0],
        lr=scales[1],
        update_ratio=0.0 if progress.solved else strategy.update_ratio,
        steps_per_second=None if steps is None else round(steps / max(seconds, 1e-9), 1),
        eval_steps=None if steps is None else total.eval_steps,
        info=outcome.info,
        **of_returns(outcome.returns),
    )


def rank_center(outcome: Outcome, direction: float) -> tuple[int | None, NDArray[np.float64], float | None]:
    """Return the center's rank among the members, and what it follows from, larger being better.

    Args:
        outcome: a measurement.
        direction: 1 to maximize, -1 to minimize.

    Returns:
        The rank, 1 for the best, or None if there is none; the fitness that the strategy is told; and that of
        the center, or None if the two cannot be compared.
    """
    fitness, bad = finite_fitness(direction * outcome.fitness)
    center = None
    if outcome.evaluation is not None and outcome.comparable and usable_number(outcome.evaluation.fitness):
        center = direction * outcome.evaluation.fitness
    rank = None if center is None else 1 + int((np.delete(fitness, bad) > center).sum())
    return (rank, fitness, center) if outcome.told is None else (rank, outcome.told, None)


@dataclass(frozen=True)
class View:
    """A generation as callbacks see it. What they do to it does not change the run."""

    row: Row
    _parameters: Tensor
    """Parameters of :attr:`center`, on their device: a view that is kept holds a copy there."""
    best_return: float | None
    """The best so far, of evaluations in ``train``, of members too in ``evolve``; None before the first."""
    module: Callable[[], nn.Module]
    """Makes a module with these parameters, a Policy in ``train``; it is the caller's own."""
    behaviours: NDArray[np.float32] | None = None
    """Mean behaviours of the generation's members, shape (population, size), read-only; None where nobody
    asked for any."""

    @cached_property
    def center(self) -> NDArray[np.float32]:
        """The unperturbed parameters after the generation, shape (dimension,), read-only."""
        array = np.asarray(self._parameters.numpy(force=True))
        array.flags.writeable = False
        return array


Callback = Callable[[View], bool | Literal["stopped"] | None]
"""Called after every generation; True stops the run by ``callback``, and "stopped" by ``stopped``."""
