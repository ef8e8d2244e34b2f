"""Check of a user-defined strategy, for ``escalade.check(MyStrategy)``: members, updates, saved state."""

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
    """Run a strategy for a few generations on the sphere function, and return a list of its faults.

    Args:
        factory: class of the strategy, or a function with the same arguments.
    """
    es, again = (_made(factory, 1) for _ in range(2))
    vectors = es.ask()
    shape = (es.population_size, _DIMENSION)
    if tuple(vectors.shape) != shape or vectors.dtype != es.center.dtype:
        return [
            f"members must have shape {shape} and type {es.center.dtype}, not {tuple(vectors.shape)} and "
            f"{vectors.dtype}"
        ]
    found = []
    if not torch.equal(vectors, again.ask()):
        found.append("the same seed gives different members; use the global generators or self.seed")
    _tell(es, vectors)
    if es.center.shape != (_DIMENSION,) or es.center.dtype != vectors.dtype:
        return [
            *found,
            "update changes the shape or type of the center; modify it in place, as in `self.center += step`",
        ]
    loaded = _made(factory, 1)
    load_strategy(loaded, *save_strategy(es))
    for _ in range(2):  # state used only by the update, such as momentum, affects later members
        vectors = es.ask()
        if not torch.equal(vectors, loaded.ask()):
            found.append(
                "members differ after loading the saved state; add what update replaces to `adapted`"
            )
            break
        _tell(es, vectors)
        _tell(loaded, vectors)
    if es.grows and not _grows(es):
        found.append("members change if a generation grows; keep the first ones equal or set `grows = False`")
    return found


def _made(factory: Callable[..., Strategy], seed: int) -> Strategy:
    with generators_seeded(seed):
        return factory(np.linspace(-1, 1, _DIMENSION, dtype=np.float32), population=_POPULATION, seed=seed)


def _tell(es: Strategy, vectors: Tensor) -> None:
    es.tell(-es._sign * vectors.square().sum(dim=1))


def _grows(es: Strategy) -> bool:
    """Return whether the first members are equal in a generation of twice the size."""
    before = es.ask()
    es.resize(2 * _POPULATION)
    return torch.equal(es.ask()[:_POPULATION], before)
