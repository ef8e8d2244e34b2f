"""Observation and action spaces: which are supported, how they flatten, and how they are saved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.masks import MASK
from escalade.errors import InputError

Description = dict[str, Any]

SMALL_IMAGE = 2**12
"""The most numbers of an image that is flattened beside other parts of an observation."""

_FILTER = "gymnasium.wrappers:FilterObservation"
_IMAGE = 3  # dimensions of a Box that is an image: channels, height, width


class UnsupportedSpace(InputError):
    """An environment's space is of a kind that policies here cannot use."""


def check_observation_space(space: spaces.Space[Any]) -> None:
    """Refuse spaces that are neither an image nor flatten to a vector a policy can read.

    Raises:
        UnsupportedSpace: names the space and what to do about it.
    """
    if is_image(space):
        return
    if isinstance(space, spaces.Box):
        if len(space.shape) >= _IMAGE:
            raise UnsupportedSpace(
                f"observation space {short(space)} has {len(space.shape)} dimensions, and policies here "
                "take vectors and images of 3: wrap the environment so that it returns one of these"
            )
    elif is_structured(space):
        for key, part in parts_of(space):
            if any(is_image(leaf) and not is_small(leaf) for leaf in leaves_of(part)):
                rest = [other for other, _ in parts_of(space) if other != key]
                others = f', or the others, with "{_FILTER}({rest})"' if rest else ""
                raise UnsupportedSpace(
                    f"observation space {short(space)} has an image of more than {SMALL_IMAGE:,} numbers "
                    "beside other parts, and networks take one image, or one vector: choose what the policy "
                    f'reads, as with `wrappers` "{_FILTER}({[key]})"{others}'
                )
            if not is_small(part):
                check_observation_space(part)
    elif not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        raise UnsupportedSpace(
            f"observation space {short(space)} is not supported: use Box, Discrete, MultiDiscrete, "
            "MultiBinary, Dict or Tuple"
        )


def observation_size(space: spaces.Space[Any]) -> int:
    """Length of a flattened observation."""
    return int(spaces.flatdim(space))


def is_image(space: spaces.Space[Any]) -> bool:
    """True where observations are images: a Box of 3 dimensions."""
    return isinstance(space, spaces.Box) and len(space.shape) == _IMAGE


def moments_size(space: spaces.Space[Any], normalize_images: bool) -> int:
    """Observation means that a policy keeps: none for images, unless they are normalised too."""
    return observation_size(space) if normalize_images or not is_image(space) else 0


def is_small(space: spaces.Space[Any]) -> bool:
    """Return whether a part of an observation is a Box that is flattened, whatever its dimensions."""
    return isinstance(space, spaces.Box) and math.prod(space.shape) <= SMALL_IMAGE


def observation_shape(space: spaces.Space[Any]) -> tuple[int, ...]:
    """Shape of one observation as policies get it: (C, H, W) of an image, (size,) of everything else."""
    return space.shape if isinstance(space, spaces.Box) and is_image(space) else (observation_size(space),)


def observation_dtype(space: spaces.Space[Any]) -> type[np.generic]:
    """Type that observations are kept in: uint8 for images of it, float64 for its own, else float32."""
    kept = (np.float64, np.uint8) if is_image(space) else (np.float64,)
    return next((kind for kind in kept if space.dtype == kind), np.float32)


def flatten(space: spaces.Space[Any], observation: Any) -> NDArray[Any]:
    """One observation as a vector: Gymnasium's flattening (one-hot for Discrete)."""
    if isinstance(space, spaces.Box):
        return np.asarray(observation).reshape(-1)
    return np.asarray(spaces.flatten(space, observation), dtype=np.float32)


def as_batch(space: spaces.Space[Any], observation: Any) -> tuple[NDArray[Any], bool]:
    """An observation, or a batch of them as a vector environment gives it, as an array with the batch first.

    Returns:
        The array, shape (n, *observation_shape), of float64, but images keep their type, and may come with
        their channels last; and whether ``observation`` was a batch.

    Raises:
        InputError: it is no observation of the space, nor a batch of them, or has NaN.
    """
    if is_structured(space):
        found = [as_batch(part, observation[key]) for key, part in parts_of(space)]
        if len({len(array) for array, _ in found}) > 1:
            raise InputError("the parts of the observation are batches of different sizes")
        rows = np.concatenate([array.reshape(len(array), -1) for array, _ in found], axis=1)
        return rows.astype(np.float32).astype(np.float64), any(batched for _, batched in found)
    given, batched = _numbers(space, _only_image(observation) if is_image(space) else observation)
    if is_image(space):
        return given.astype(space.dtype).reshape(-1, *observation_shape(space)), batched
    rows = given if batched else given[None]
    if isinstance(space, spaces.Box):
        with np.errstate(over="ignore"):  # as in training, whose numbers are these
            kept = rows.reshape(len(rows), -1).astype(observation_dtype(space))
        return kept.astype(np.float64), batched
    return np.stack([flatten(space, row) for row in rows]).astype(np.float64), batched


def _only_image(observation: Any) -> Any:
    """Return the image of an observation, perhaps from a Dict or Tuple with text or a mask of actions."""
    if not isinstance(observation, Mapping | tuple):
        return observation
    named = observation.items() if isinstance(observation, Mapping) else enumerate(observation)
    parts = [part for key, part in named if key != MASK and np.asarray(part).dtype.kind != "U"]
    return _only_image(parts[0]) if len(parts) == 1 else observation


def _numbers(space: spaces.Space[Any], observation: Any) -> tuple[NDArray[Any], bool]:
    """An observation of one part, or a batch of them, as an array; and which of the two it is."""
    given, shape = np.array(observation), space.shape or ()
    batched = given.ndim > len(shape)
    if given.dtype.kind not in "buif" or (given.dtype.kind == "f" and np.isnan(given).any()):
        raise InputError(f"the observation is no array of numbers, or has NaN: {short(space)} is wanted")
    own = given.shape[int(batched) :]
    if own == shape:
        return given, batched
    if is_image(space) and own == (*shape[1:], shape[0]):  # as the environment itself gives it
        return np.moveaxis(given, -1, -3), batched
    raise InputError(
        f"the observation has the shape {given.shape}: the policy takes {shape}, or a batch of these"
    )


def parts_of(space: Any) -> list[tuple[Any, spaces.Space[Any]]]:
    """Keys and spaces in the order of Gymnasium's flattening."""
    return list(space.items()) if isinstance(space, spaces.Dict) else list(enumerate(space))


def is_structured(space: spaces.Space[Any]) -> bool:
    """Return whether the space's values are made of parts."""
    return isinstance(space, spaces.Dict | spaces.Tuple)


def leaves_of(space: spaces.Space[Any]) -> list[spaces.Space[Any]]:
    """Return the innermost parts of a space, in the order of their outputs; itself if it has no parts."""
    if not is_structured(space):
        return [space]
    return [leaf for _, part in parts_of(space) for leaf in leaves_of(part)]


def is_vector(space: spaces.Space[Any]) -> bool:
    """True where observations are vectors as they come."""
    return isinstance(space, spaces.Box) and len(space.shape) == 1


def describe(space: spaces.Space[Any]) -> Description:
    """The space as plain JSON values; :func:`restore` is the way back."""
    match space:
        case spaces.Box():
            return {
                "kind": "Box",
                "low": _bounds(space.low),
                "high": _bounds(space.high),
                "shape": list(space.shape),
                "dtype": str(space.dtype),
            }
        case spaces.Discrete():
            whole = {"n": int(space.n), "start": int(space.start)}
            return {"kind": "Discrete", **whole, "dtype": str(space.dtype)}
        case spaces.MultiDiscrete():
            whole = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
            return {"kind": "MultiDiscrete", **whole, "dtype": str(space.dtype)}
        case spaces.MultiBinary():
            return {"kind": "MultiBinary", "shape": list(space.shape)}
        case spaces.Dict():
            return {"kind": "Dict", "spaces": [[key, describe(part)] for key, part in space.items()]}
        case spaces.Tuple():
            return {"kind": "Tuple", "spaces": [describe(part) for part in space]}
    raise InputError(f"space {short(space)} cannot be saved")


def restore(saved: Description) -> spaces.Space[Any]:
    """The space that :func:`describe` described."""
    dtype = np.dtype(saved.get("dtype", "int64"))
    match saved["kind"]:
        case "Box":
            shape = tuple(saved["shape"])
            low, high = (_numbers_of(saved[end], dtype).reshape(shape) for end in ("low", "high"))
            return spaces.Box(low, high, shape, dtype.type)
        case "Discrete":
            return spaces.Discrete(saved["n"], start=saved["start"], dtype=dtype.type)
        case "MultiDiscrete":
            return spaces.MultiDiscrete(saved["nvec"], start=saved["start"], dtype=dtype.type)
        case "MultiBinary":
            shape = saved["shape"]
            return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
        case "Dict":
            return spaces.Dict([(key, restore(part)) for key, part in saved["spaces"]])
        case _:
            return spaces.Tuple([restore(part) for part in saved["spaces"]])


def plain(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Return a copy made of Gymnasium's own classes.

    Workers cannot import a class that a package makes as it runs. Spaces of kinds that Escalade does not
    support are returned as they are.
    """
    try:
        copy = restore(describe(space))
    except InputError:
        return space
    # An integer's infinite bounds are stored as the limits of its type.
    if isinstance(space, spaces.Box) and isinstance(copy, spaces.Box):
        copy.bounded_below, copy.bounded_above = space.bounded_below, space.bounded_above
    return copy


def same(first: spaces.Space[Any], second: spaces.Space[Any]) -> bool:
    """Return whether two spaces hold the same values, up to the precision of their bounds."""
    if isinstance(first, spaces.Box) and isinstance(second, spaces.Box):
        return bool(
            first.shape == second.shape
            and np.issubdtype(first.dtype, np.floating) == np.issubdtype(second.dtype, np.floating)
            and np.allclose(first.low, second.low, rtol=1e-5)
            and np.allclose(first.high, second.high, rtol=1e-5)
        )
    return bool(first == second)


def _bounds(values: NDArray[Any]) -> list[str]:
    # Text keeps infinities, which JSON has not, and every digit of the rest.
    kind = int if values.dtype.kind in "iu" else float
    return [repr(kind(value)) for value in values.reshape(-1)]


def _numbers_of(bounds: list[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The way back from :func:`_bounds`."""
    return np.array([(int if dtype.kind in "iu" else float)(text) for text in bounds], dtype)


def short(thing: object) -> str:
    """A space, or what should be of one, as a message shows it: in one line of at most 60 letters."""
    text = " ".join(repr(thing).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
