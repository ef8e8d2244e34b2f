"""The row of a generation, for recorders and progress.csv."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
