"""Exploration: noise on the outputs of policies, and masks of illegal actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.envs import ActionMap
from escalade.envs.masks import Masks
from escalade.perturbation import Stream, normals
from escalade.policies.drawing import make_draws, mask_illegal
from escalade.rollout.episodes import EpisodeJob

Numbers = NDArray[np.int64]


class Exploration:
    """Changes a step's outputs before the action map: a function of each episode's seed and step.

    Args:
        actions: The action map. If it samples actions, the noise of the samples is added to the outputs.
        noise: Standard deviation of the noise on the outputs of members.
        masks: Legal actions of the environments' slots, or None if they have no masks.
    """

    def __init__(self, actions: ActionMap, noise: float, masks: Masks | None) -> None:
        self._draws = make_draws(actions)
        self._noise = noise if actions.continuous else 0.0
        self._masks = masks

    def __call__(
        self,
        raw: NDArray[Any],
        job: EpisodeJob,
        items: Numbers,
        seeds: Numbers,
        steps: Numbers,
        slots: Numbers,
    ) -> NDArray[Any]:
        """Return the changed outputs, shape (n, outputs), of episodes with these items, seeds and steps."""
        if self._draws is not None:
            drawn = items < job.drawn_items
            raw = raw + self._draws(seeds, steps) * drawn[:, None]
        if self._noise:
            address = (Stream.ACTION, seeds[:, None], steps[:, None], np.arange(raw.shape[1])[None])
            trained = items < job.training_items
            raw = raw + (normals(*address) * (self._noise * trained)[:, None]).astype(np.float32)
        if self._masks is not None and self._masks.active:
            raw = mask_illegal(raw, self._masks.of(slots))
        return raw


def make_exploration(actions: ActionMap, noise: float, masks: Masks | None) -> Exploration | None:
    """Return the :class:`Exploration` of these arguments, or None if it would change no output."""
    needless = not actions.draws and (not noise or not actions.continuous) and masks is None
    return None if needless else Exploration(actions, noise, masks)
