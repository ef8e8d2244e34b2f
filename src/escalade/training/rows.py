"""Rows for recorders and views for callbacks, one per generation."""

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
    """Return the row of a generation.

    Args:
        outcome: Measurement of the generation.
        judged: The evaluation that counts, if there was one.
        progress: Progress of the run, including this generation.
        strategy: The strategy after its update.
        scales: sigma and lr of the generation.
        rank: Rank of the center among the members, or None if they cannot be compared.
        seconds: Duration of the generation.
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
    """Return the center's rank among the members, and the fitness values behind it (larger is better).

    Args:
        outcome: Measurement of a generation.
        direction: 1 to maximize, -1 to minimize.

    Returns:
        The rank, 1 for the best, or None if the center cannot be compared with the members; the members'
        fitness as passed to the strategy; and the center's fitness, or None if it cannot be compared.
    """
    fitness, bad = finite_fitness(direction * outcome.fitness)
    center = None
    if outcome.evaluation is not None and outcome.comparable and usable_number(outcome.evaluation.fitness):
        center = direction * outcome.evaluation.fitness
    rank = None if center is None else 1 + int((np.delete(fitness, bad) > center).sum())
    return (rank, fitness, center) if outcome.shaped is None else (rank, outcome.shaped, None)


@dataclass(frozen=True)
class View:
    """A generation, as passed to callbacks. Changes to it do not affect the run."""

    row: Row
    _parameters: Tensor
    """A copy of the parameters of :attr:`center`, on their device."""
    best_return: float | None
    """Best return so far, of evaluations in ``train``, also of members in ``evolve``, or None."""
    module: Callable[[], nn.Module]
    """Returns a new module with these parameters, a Policy in ``train``. The caller owns it."""
    behaviors: NDArray[np.float32] | None = None
    """Mean behaviors of the generation's members, shape (population, size), read-only, or None without."""

    @cached_property
    def center(self) -> NDArray[np.float32]:
        """Unperturbed parameters after the generation, shape (dimension,), read-only."""
        array = np.asarray(self._parameters.numpy(force=True))
        array.flags.writeable = False
        return array


Callback = Callable[[View], bool | Literal["stopped"] | None]
"""Function called after every generation.

True stops the run with the reason ``callback``, "stopped" with ``stopped``.
"""
