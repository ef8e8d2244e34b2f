"""Stochastic policies: actions drawn by a policy's outputs, and actions that are legal."""

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
    """Noise on the outputs, whose largest is then a choice with the probabilities of a softmax.

    It is the softmax of five times the outputs (a temperature of 0.2). In MultiDiscrete spaces each
    component is drawn; in MultiBinary spaces a number is 1 with the probability of the sigmoid of five times
    its output. The parts of Dict and Tuple spaces are drawn likewise, except for Boxes. A draw is a function
    of the episode's seed and its step alone.
    """

    def __init__(self, actions: ActionMap) -> None:
        parts = actions.leaves
        sizes = [part.outputs for part in parts]
        self._outputs = np.arange(actions.outputs)
        self._scale = np.repeat([TEMPERATURE if part.draws else 0.0 for part in parts], sizes)
        self._signs = np.repeat([isinstance(part.space, spaces.MultiBinary) for part in parts], sizes)

    def __call__(self, seeds: ArrayLike, steps: ArrayLike) -> NDArray[np.float64]:
        """Noise of shape (n, outputs) for n episodes with these seeds, at these steps, 0 for the first."""
        address = (Stream.CHOICE, np.asarray(seeds)[:, None], np.asarray(steps)[:, None])
        noise = gumbels(*address, self._outputs)
        if self._signs.any():  # the difference of two has the logistic distribution
            noise -= self._signs * gumbels(*address, len(self._outputs) + self._outputs)
        return np.asarray(self._scale * noise)


def make_draws(actions: ActionMap) -> ChoiceNoise | None:
    """The noise that the head ``sample`` adds, or None if the best action is taken."""
    return ChoiceNoise(actions) if actions.draws else None


class ActedEpisodes:
    """The seeds and the step of episodes that are played one action at a time."""

    def __init__(self, draws: ChoiceNoise) -> None:
        self._draws = draws
        self._seeds: list[int] | None = None
        self._step = 0

    def begin(self, seeds: list[int] | None) -> None:
        """Begin episodes with these seeds; None: with 0, 1, 2 and so on, as many as there are."""
        self._seeds, self._step = seeds, 0

    def noise(self, rows: int) -> NDArray[np.float64]:
        """The noise of the next step of each episode, shape (rows, outputs).

        Raises:
            InputError: the episodes began with another number of seeds.
        """
        seeds = list(range(rows)) if self._seeds is None else self._seeds
        if len(seeds) != rows:
            raise InputError(f"reset had {len(seeds)} seeds, not {rows}: call policy.reset([...]) first")
        self._step += 1
        return self._draws(seeds, np.full(rows, self._step - 1))


def only_legal(outputs: Array, masks: NDArray[np.bool_]) -> Array:
    """The outputs, with those of illegal actions at minus infinity; both have the shape (n, outputs)."""
    return np.where(masks, outputs, -np.inf)
