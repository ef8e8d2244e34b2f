"""Stochastic policies, which draw actions by their outputs, and masks of legal actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from escalade.envs.actions import ActionMap
from escalade.errors import InputError
from escalade.perturbation import Stream, gumbels

Array = NDArray[Any]

TEMPERATURE = 0.2  # measured in benchmarks/defaults.md


class ChoiceNoise:
    """Noise for the outputs, after which the largest output is a sample from their softmax.

    The softmax is that of five times the outputs (a temperature of 0.2). In MultiDiscrete spaces each
    component is drawn. In MultiBinary spaces a number is 1 with probability sigmoid(5 * output). The parts of
    Dict and Tuple spaces are drawn in the same way, except for Boxes. A draw is a function of the episode's
    seed and the step only.
    """

    def __init__(self, actions: ActionMap) -> None:
        parts = actions.leaves
        sizes = [part.outputs for part in parts]
        self._outputs = np.arange(actions.outputs)
        self._scale = np.repeat([TEMPERATURE if part.draws else 0.0 for part in parts], sizes)
        self._signs = np.repeat([isinstance(part.space, spaces.MultiBinary) for part in parts], sizes)

    def __call__(self, seeds: ArrayLike, steps: ArrayLike) -> NDArray[np.float64]:
        """Return noise, shape (n, outputs), for n episodes by their seeds and steps (counted from 0)."""
        address = (Stream.CHOICE, np.asarray(seeds)[:, None], np.asarray(steps)[:, None])
        noise = gumbels(*address, self._outputs)
        if self._signs.any():  # the difference of two Gumbel numbers has the logistic distribution
            noise -= self._signs * gumbels(*address, len(self._outputs) + self._outputs)
        return np.asarray(self._scale * noise)


def make_draws(actions: ActionMap) -> ChoiceNoise | None:
    """Return the noise for the head ``sample``, or None if the policy takes the best action."""
    return ChoiceNoise(actions) if actions.draws else None


class ActedEpisodes:
    """Seeds and current step of episodes that are played one action at a time."""

    def __init__(self, draws: ChoiceNoise) -> None:
        self._draws = draws
        self._seeds: list[int] | None = None
        self._step = 0

    def begin(self, seeds: list[int] | None) -> None:
        """Begin episodes with these seeds. None means 0, 1, 2 and so on."""
        self._seeds, self._step = seeds, 0

    def noise(self, rows: int) -> NDArray[np.float64]:
        """Return the noise of each episode's next step, shape (rows, outputs).

        Raises:
            InputError: the number of seeds differs from ``rows``.
        """
        seeds = list(range(rows)) if self._seeds is None else self._seeds
        if len(seeds) != rows:
            raise InputError(
                f"reset had {len(seeds)} seeds, not {rows}; "
                "call policy.reset([...]) with one seed per episode"
            )
        self._step += 1
        return self._draws(seeds, np.full(rows, self._step - 1))


def mask_illegal(outputs: Array, masks: NDArray[np.bool_]) -> Array:
    """Set the outputs of illegal actions to minus infinity; both arrays have the shape (n, outputs)."""
    return np.where(masks, outputs, -np.inf)
