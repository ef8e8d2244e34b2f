"""Observations of random play, from which virtual batch normalization computes its statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.envs import ActionMap, Environment, SlotError, vectorize
from escalade.envs.masks import Masks
from escalade.errors import EnvironmentFailure, with_place
from escalade.perturbation import Stream, normals, seeds

_APART = 8  # steps between two collected observations, as neighboring images hardly differ


def reference_batch(environment: Environment, actions: ActionMap, seed: int, frames: int) -> NDArray[Any]:
    """Return every eighth observation of episodes with random outputs, shape (frames, ...).

    The observations are a function of ``seed``, over as many episodes as necessary.

    Raises:
        EnvironmentFailure: The environment raised.
    """
    try:
        return _play(environment, actions, seed, frames)
    except SlotError as failed:
        raise EnvironmentFailure(
            f"environment {environment.id} raised {with_place(failed.problem)}, "
            "in random play for the reference batch"
        ) from failed.problem


def _play(environment: Environment, actions: ActionMap, seed: int, frames: int) -> NDArray[Any]:
    act, slot = actions.compile(), np.zeros(1, np.int64)
    vector = vectorize(environment, 1)
    masks: Masks | None = getattr(vector, "masks", None)
    collected: list[NDArray[Any]] = []
    try:
        episode, ended, step = 0, True, 0
        while len(collected) < frames:
            if ended:
                start = seeds(seed, Stream.REFERENCE, np.array([episode]))
                seen = vector.reset(slot, start)
                episode += 1
            if step % _APART == 0:
                collected.append(np.array(seen[0]))
            outputs = normals(seed, Stream.REFERENCE, step, np.arange(actions.outputs))
            chosen = act(outputs[None].astype(np.float32))
            seen, _, over = vector.step(slot, chosen if masks is None else masks.legal(slot, chosen))
            ended = bool(over[0])
            step += 1
    finally:
        vector.close()
    return np.stack(collected)
