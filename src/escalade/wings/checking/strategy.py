"""A check of your own strategy, for ``escalade.check(MyStrategy)``: members, updates, saved state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from escalade.strategies.base import Strategy
from escalade.strategies.tensors import load_strategy, save_strategy
from escalade.support.generators import generators_seeded

_DIMENSION, _POPULATION = 6, 8


def check_strategy(factory: Callable[..., Strategy]) -> list[str]:
    """Try a strategy on a few generations of a sphere, and describe what is wrong with it.

    Args:
        factory: its class, or a function that is called like one.
    """
    es, again = (_made(factory, 1) for _ in range(2))
    vectors = es.ask()
    wanted = (es.population_size, _DIMENSION)
    if tuple(vectors.shape) != wanted or vectors.dtype != es.center.dtype:
        return [f"members are {tuple(vectors.shape)} of {vectors.dtype}, not {wanted} of {es.center.dtype}"]
    found = []
    if not torch.equal(vectors, again.ask()):
        found.append("members do not follow from the seed: use the global generators, or self.seed")
    _tell(es, vectors)
    if es.center.shape != (_DIMENSION,) or es.center.dtype != vectors.dtype:
        return [
            *found,
            "update leaves a centre of another shape or type: write to it, as in `self.center += step`",
        ]
    loaded = _made(factory, 1)
    load_strategy(loaded, *save_strategy(es))
    for _ in range(2):  # what only the update uses, such as a momentum, shows in the members after it
        vectors = es.ask()
        if not torch.equal(vectors, loaded.ask()):
            found.append(
                "a copy that loads the state has other members: add to `adapted` what update replaces"
            )
            break
        _tell(es, vectors)
        _tell(loaded, vectors)
    if es.grows and not _grows(es):
        found.append("members change if a generation grows: make them the same, or set `grows = False`")
    return found


def _made(factory: Callable[..., Strategy], seed: int) -> Strategy:
    with generators_seeded(seed):
        return factory(np.linspace(-1, 1, _DIMENSION, dtype=np.float32), population=_POPULATION, seed=seed)


def _tell(es: Strategy, vectors: Tensor) -> None:
    es.tell(-es._sign * vectors.square().sum(dim=1))


def _grows(es: Strategy) -> bool:
    """Return whether the first members stay the same in a generation of twice the size."""
    before = es.ask()
    es.resize(2 * _POPULATION)
    return torch.equal(es.ask()[:_POPULATION], before)
