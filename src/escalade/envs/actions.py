"""Maps a policy's raw outputs to an environment's actions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs import BOUNDINGS
from escalade.envs.spaces import UnsupportedSpace
from escalade.envs.structured import assembled, split
from escalade.errors import InputError

Array = NDArray[Any]

_MOST_BINS = 2**20
_ABOUT = 3  # bounds count as about [-1, 1] if the larger magnitude is from 1/3 to 3
_DISCRETE = spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
_WHOLE = "iub"  # kinds of integer dtypes


@dataclass(frozen=True)
class ActionMap:
    """Maps raw outputs of shape (k, outputs) to k actions of ``space``.

    Discrete spaces take the largest output (MultiDiscrete: of each group), MultiBinary the sign. With the
    head ``sample``, noise on the outputs makes this a random draw
    (:class:`escalade.policies.drawing.ChoiceNoise`). With bins (``head``), each dimension of a Box takes
    the bin of its largest output. Each innermost part of a Dict or Tuple has its own outputs.

    Other Boxes are bounded by ``bounding``: ``clip`` clips to the bounds; ``rescale`` clips to [-1, 1] and
    scales to the bounds; ``tanh`` and ``sigmoid`` squash to the whole range; ``auto`` is ``clip`` for bounds
    of about [-1, 1], else ``rescale``. A comma-separated list sets one for each dimension. Dimensions
    without bounds are not changed.
    """

    space: spaces.Space[Any]
    bounding: str = "auto"
    head: str = "plain"

    def __post_init__(self) -> None:
        if not self.parts:  # parts have been checked already
            self._check()
        elif self.head == "auto":
            object.__setattr__(self, "head", "sample" if self.draws else "plain")

    def _check(self) -> None:
        known = spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
        if not isinstance(self.space, known):
            raise UnsupportedSpace(
                f"action space {self.space} is not supported: use Box, Discrete, MultiDiscrete, MultiBinary, "
                "or a Dict or Tuple of these"
            )
        names = self.bounding.split(",")
        if not set(names) <= set(BOUNDINGS):
            raise InputError(f"action map {self.bounding!r} must be one of {', '.join(BOUNDINGS)}")
        size = math.prod(self.space.shape or ())
        if isinstance(self.space, spaces.Box) and len(names) not in (1, size):
            raise InputError(
                f"`action_map` {self.bounding} has {len(names)} entries, but actions have {size} dimensions"
            )
        object.__setattr__(self, "bounding", self._without_auto(names))
        discrete = isinstance(self.space, _DISCRETE)
        if self.head == "auto":
            object.__setattr__(self, "head", "sample" if discrete else "plain")
        if self.head == "sample" and not discrete:
            raise InputError("head 'sample' needs discrete actions; use `head=plain` or `action_noise`")
        if self.head not in ("plain", "sample"):
            if not isinstance(self.space, spaces.Box):
                raise InputError(
                    f"head {self.head!r} needs a Box action space; use `head=plain` or `head=sample`"
                )
            self._bin_values(self.space)

    @cached_property
    def parts(self) -> list[ActionMap]:
        """Maps of the innermost parts of a Dict or Tuple, in the order of outputs. Empty for other spaces."""
        return [ActionMap(*part) for part in split(self.space, self.bounding, self.head)]

    @property
    def leaves(self) -> list[ActionMap]:
        """Maps of all parts, or this map itself if the space has no parts."""
        return self.parts or [self]

    def _without_auto(self, names: list[str]) -> str:
        """Return ``bounding`` with each ``auto`` replaced by the map that it selects."""
        if not isinstance(self.space, spaces.Box) or "auto" not in names:
            return self.bounding.replace("auto", "clip")
        off_scale = self._off_scale(self.space)
        each = names * (len(off_scale) // len(names))
        selected = ["rescale" if off else "clip" for off in off_scale.tolist()]
        found = [other if name == "auto" else name for name, other in zip(each, selected, strict=True)]
        return found[0] if len(set(found)) == 1 else ",".join(found)

    def _off_scale(self, space: spaces.Box) -> NDArray[np.bool_]:
        """Return True for each dimension with two bounds that are not about [-1, 1], the scale of outputs."""
        low, high = space.low.reshape(-1).astype(np.float64), space.high.reshape(-1).astype(np.float64)
        largest = np.maximum(-low, high)
        about = (low <= 0) & (high >= 0) & (largest >= 1 / _ABOUT) & (largest <= _ABOUT)
        return np.isfinite(low) & np.isfinite(high) & ~about

    @property
    def outputs(self) -> int:
        """Number of outputs of the policy."""
        if self.parts:
            return sum(part.outputs for part in self.parts)
        match self.space:
            case spaces.Discrete():
                return int(self.space.n)
            case spaces.MultiDiscrete():
                return sum(map(int, self.space.nvec.reshape(-1)))
            case spaces.Box() if self.head != "plain":
                return int(self._bin_values(self.space).size)
        return math.prod(self.space.shape or ())

    @property
    def continuous(self) -> bool:
        """True if noise added to the raw outputs is noise on the action."""
        return all(isinstance(part.space, spaces.Box) and part.head == "plain" for part in self.leaves)

    @property
    def mapped(self) -> bool:
        """True if ``bounding`` has an effect: for Boxes without bins, also inside a Dict or Tuple."""
        return any(part.continuous for part in self.leaves)

    @property
    def draws(self) -> bool:
        """True if actions, or parts of them, are sampled from the outputs."""
        return any(part.head == "sample" for part in self.leaves)

    @property
    def tie_advice(self) -> str:
        """Options that may separate policies whose actions are the same; may be empty."""
        if self.parts:
            advice = (part.tie_advice for part in self.parts)
            return " or ".join(dict.fromkeys(text for text in advice if text))
        if not isinstance(self.space, spaces.Box):
            return "`head=sample`" if isinstance(self.space, _DISCRETE) and not self.draws else ""
        clipped = np.array(self.bounding.split(",")) == "clip"
        return "`action_map=rescale`" if (clipped & self._off_scale(self.space)).any() else ""

    @property
    def bounded(self) -> bool:
        """True if a dimension of an action has a lower and an upper bound."""
        boxes = [part.space for part in self.leaves if isinstance(part.space, spaces.Box)]
        return any((box.bounded_below & box.bounded_above).any() for box in boxes)

    def compile(self) -> Callable[[Array], Array]:
        """Return the map as a function from raw outputs (k, outputs), float32, to an array of k actions.

        Everything independent of the outputs is computed here, once. The function returns a new array in
        each call, which shares no memory with the outputs: an environment may store its action or write to
        it.
        """
        space, parts = self.space, self.parts
        if parts:
            maps = [(part.space, part.compile()) for part in parts]
            return partial(assembled, space, maps, np.cumsum([part.outputs for part in parts])[:-1])
        if isinstance(space, spaces.Discrete):
            return partial(_largest, int(space.start))
        if isinstance(space, spaces.MultiDiscrete):
            return partial(_largest_of_groups, space, np.cumsum(space.nvec.reshape(-1))[:-1])
        if isinstance(space, spaces.MultiBinary):
            return partial(_signs, space.shape)
        assert isinstance(space, spaces.Box)
        if self.head != "plain":
            return _Bins(space, self._bin_values(space))
        return _Bounded(space, self.bounding)

    def _bin_values(self, space: spaces.Box) -> Array:
        """Return the values of the bins, shape (dimensions, bins)."""
        kind, _, rest = self.head.partition(":")
        # The width of a Box of small integers may not fit its dtype.
        exact = np.float64 if space.dtype.kind in _WHOLE else space.dtype
        low, high = (bound.reshape(-1, 1).astype(exact) for bound in (space.low, space.high))
        try:
            numbers = [float(number) for number in rest.split(",")]
        except ValueError:
            numbers = []
        if kind == "uniform" and numbers and numbers[0] in range(2, _MOST_BINS + 1):
            if not (np.isfinite(low).all() and np.isfinite(high).all()):
                raise InputError(f"head {self.head!r} needs action bounds; use custom:VALUE,VALUE,...")
            values = low + (high - low) * np.linspace(0, 1, int(numbers[0]))
            return np.asarray(np.clip(values, low, high))  # rounding may exceed the bounds
        if kind == "custom" and len(numbers) >= 2 and np.isfinite(numbers).all():
            return np.asarray(np.clip(np.broadcast_to(numbers, (len(low), len(numbers))), low, high))
        raise InputError(
            f"head {self.head!r} must be plain, uniform:N (N from 2 to {_MOST_BINS:,}) or custom:A,B,..."
        )


def _largest(start: int, raw: Array) -> Array:
    two = raw.shape[1] == 2  # a comparison is several times cheaper than argmax
    best = (raw[:, 1] > raw[:, 0]).astype(np.int64) if two else raw.argmax(axis=1)
    return best + start if start else best


def _largest_of_groups(space: spaces.MultiDiscrete, ends: Array, raw: Array) -> Array:
    choices = [group.argmax(axis=1) for group in np.split(raw, ends, axis=1)]
    chosen: Array = np.stack(choices, axis=1) + space.start.reshape(-1)
    return chosen.reshape(-1, *space.shape).astype(space.dtype)


def _signs(shape: tuple[int, ...], raw: Array) -> Array:
    return (raw > 0).astype(np.int8).reshape(-1, *shape)


class _Bins:
    def __init__(self, space: spaces.Box, values: Array) -> None:
        self.shape = space.shape
        values = np.rint(values) if space.dtype.kind in _WHOLE else values
        self.values = values.astype(space.dtype)
        self.rows = np.arange(len(values))

    def __call__(self, raw: Array) -> Array:
        best = raw.reshape(len(raw), len(self.rows), -1).argmax(axis=2)
        chosen: Array = self.values[self.rows, best]
        return chosen.reshape(-1, *self.shape)


class _Bounded:
    def __init__(self, space: spaces.Box, bounding: str) -> None:
        self.shape, self.dtype = space.shape, space.dtype
        low, high = space.low.reshape(-1).astype(np.float64), space.high.reshape(-1).astype(np.float64)
        kind = space.dtype.kind
        # In the precision of the space, because a float64 bound rounded to float32 may lie outside of it.
        self.inner = np.dtype(np.float64 if kind in "iu" or space.dtype == np.float64 else np.float32)
        self.whole = kind in _WHOLE  # rounded to the nearest integer; a cast would truncate
        self.low, self.high = low.astype(self.inner), high.astype(self.inner)
        bounded = (space.bounded_below & space.bounded_above).reshape(-1)
        with np.errstate(invalid="ignore", over="ignore"):  # infinite bounds, which np.where discards
            middle = np.where(bounded, low / 2 + high / 2, 0)
            half = np.where(bounded, high / 2 - low / 2, 1)
            wide = not np.isfinite(half.astype(np.float32)).all()
        precision = np.float64 if wide else np.float32
        self.middle: Array = middle.astype(precision)
        self.half: Array = half.astype(precision)
        names = bounding.split(",")
        each = np.array(names * (len(low) // len(names)))
        self.maps = {name: bounded & (each == name) for name in set(names) - {"clip"}}
        """Dimensions that are squashed to [-1, 1] first, by name of the map."""

    def __call__(self, raw: Array) -> Array:
        mapped = raw
        for name, chosen in self.maps.items():
            mapped = np.where(chosen, self.middle + self.half * _SQUASHED[name](raw), mapped)
        # minimum and maximum avoid the overhead of np.clip, which matters for small batches
        bounded = np.minimum(np.maximum(mapped.astype(self.inner, copy=False), self.low), self.high)
        bounded = np.rint(bounded) if self.whole else bounded
        return bounded.reshape(-1, *self.shape).astype(self.dtype, copy=False)


# sigmoid(x) = (1 + tanh(x / 2)) / 2; middle and half scale tanh to the whole range.
_SQUASHED: dict[str, Callable[[Array], Array]] = {
    "rescale": lambda raw: np.clip(raw, -1, 1),
    "tanh": np.tanh,
    "sigmoid": lambda raw: np.tanh(raw / 2),
}
