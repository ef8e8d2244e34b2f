"""A strategy of the user's own: what it draws follows from seed and generation, and its members are checked.

The strategies of the registry draw nothing from global generators, and are left alone.
"""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import DensePopulation, Population, Stream, seeds
from escalade.support.generators import generators_seeded

if TYPE_CHECKING:
    from escalade.strategies.base import Strategy

_METHODS = ("members", "sample", "ask", "update", "tell", "remember")
_NEEDED = ("size", "dimension", "dtype", "antithetic", "write")


def is_own(kind: type) -> bool:
    """Tell whether the class is the user's, not one of this package."""
    return not kind.__module__.startswith("escalade.")


def watch_methods(kind: type) -> None:
    """Seed the global generators around those methods of a user's class that ask and tell it."""
    for place, name in enumerate(_METHODS):
        method = vars(kind).get(name)
        if inspect.isfunction(method):
            setattr(kind, name, _watched(method, name, place))


def _watched(method: Callable[..., Any], name: str, place: int) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Strategy, *arguments: Any, **keywords: Any) -> Any:
        running: set[str] = vars(self).setdefault("_running", set())
        if name in running:  # by way of super(): one stream of numbers
            return method(self, *arguments, **keywords)
        running.add(name)
        try:
            with generators_seeded(int(seeds(self.seed, Stream.STRATEGY, self.generation, place))):
                found = method(self, *arguments, **keywords)
        finally:
            running.discard(name)
        if name in ("members", "sample"):
            _check_members(self, found, f"{type(self).__name__}.{name}()")
        return found

    return call


def check_grown(strategy: Strategy, before: Population, grown: Population) -> None:
    """Check that members of a generation that has grown are those that there were.

    Raises:
        InputError: the strategy is a user's, and makes other members where there are more of them.
    """
    if not is_own(type(strategy)):
        return
    one, again = np.empty((2, before.dimension), before.dtype)
    for member in range(before.size):
        before.write(member, one)
        grown.write(member, again)
        if not np.array_equal(one, again, equal_nan=True):
            raise InputError(
                f"member {member} of {type(strategy).__name__} is another one among {grown.size} than among "
                f"{before.size}: make it the same in both, or say `grows = False` in the class"
            )


def _check_members(strategy: Strategy, found: Any, what: str) -> None:
    """Check what a user's ``members`` or ``sample`` gave.

    Raises:
        InputError: it is no population, or one of another size, dimension or type.
    """
    wanted = strategy.population_size, strategy.dimension
    dtype = (
        torch.empty(0, dtype=strategy.center.dtype, device="cpu").numpy().dtype
    )  # the centre may be on a GPU
    shape: tuple[int, ...]
    if isinstance(found, DensePopulation):
        vectors: Any = found.vectors  # whatever the user put there
        if not isinstance(vectors, np.ndarray):
            raise InputError(
                f"{what} gave vectors that are a {type(vectors).__name__}: make them a numpy array"
            )
        shape = vectors.shape
    elif all(hasattr(found, name) for name in _NEEDED):
        shape = (found.size, found.dimension)
    else:
        raise InputError(
            f"{what} gave a {type(found).__name__}: it must give a population, such as "
            "escalade.strategies.DensePopulation(vectors)"
        )
    if shape != wanted:
        raise InputError(f"{what} gave members of shape {shape}: it must be {wanted}, one row a member")
    if found.dtype != dtype:
        raise InputError(f"{what} gave members of {found.dtype}: they must be {dtype}, as the centre is")


def check_updated(strategy: Strategy, before: Tensor) -> None:
    """Check what a user's ``update`` has left: a centre as it was ``before``, and a number for sigma.

    Raises:
        InputError: it is something else.
    """
    if not is_own(type(strategy)):
        return
    who = f"{type(strategy).__name__}.update()"
    sigma: Any = strategy.sigma
    if (left := _kind(strategy.center)) != (kept := _kind(before)):
        raise InputError(f"{who} left {left} as the centre: it must stay a tensor {kept}")
    if not isinstance(sigma, numbers.Real):
        raise InputError(f"{who} left {sigma!r} as sigma: it must be a number")


def _kind(center: Any) -> str:
    is_tensor = isinstance(center, Tensor)
    return f"{tuple(center.shape)} of {center.dtype}" if is_tensor else type(center).__name__
