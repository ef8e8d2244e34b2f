"""Noise by which policies explore, and the actions that they may not take."""

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
        actions: the action map; if it draws its actions, the noise is that of the draw.
        noise: standard deviation of the noise on the outputs of members.
        masks: legal actions of the environments' slots; None if they cannot be masked.
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
        """Outputs of shape (n, outputs), of the episodes with these items and seeds, at these steps."""
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
    """The :class:`Exploration` of these arguments, or None if it would change no output."""
    useless = not actions.draws and (not noise or not actions.continuous) and masks is None
    return None if useless else Exploration(actions, noise, masks)
