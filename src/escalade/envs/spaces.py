"""Checks, flattens and serializes observation and action spaces."""

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
"""Maximum size of an image that is flattened beside other parts of an observation."""

_FILTER = "gymnasium.wrappers:FilterObservation"
_IMAGE = 3  # dimensions of a Box that is an image: channels, height, width


class UnsupportedSpace(InputError):
    """Policies do not support this kind of space."""


def check_observation_space(space: spaces.Space[Any]) -> None:
    """Check that a space is an image or flattens to a vector.

    Raises:
        UnsupportedSpace: it is neither.
    """
    if is_image(space):
        return
    if isinstance(space, spaces.Box):
        if len(space.shape) >= _IMAGE:
            raise UnsupportedSpace(
                f"observation space {short(space)} has {len(space.shape)} dimensions, but policies take "
                "vectors and images of 3 dimensions: wrap the environment to return one of these"
            )
    elif is_structured(space):
        for key, part in parts_of(space):
            if any(is_image(leaf) and not is_small(leaf) for leaf in leaves_of(part)):
                rest = [other for other, _ in parts_of(space) if other != key]
                others = f', or the other parts with "{_FILTER}({rest})"' if rest else ""
                raise UnsupportedSpace(
                    f"observation space {short(space)} has an image of more than {SMALL_IMAGE:,} numbers "
                    "beside other parts, but networks take one image or one vector: select the image "
                    f'with `wrappers` "{_FILTER}({[key]})"{others}'
                )
            if not is_small(part):
                check_observation_space(part)
    elif not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        raise UnsupportedSpace(
            f"observation space {short(space)} is not supported: use Box, Discrete, MultiDiscrete, "
            "MultiBinary, Dict or Tuple"
        )


def observation_size(space: spaces.Space[Any]) -> int:
    """Return the length of a flattened observation."""
    return int(spaces.flatdim(space))


def is_image(space: spaces.Space[Any]) -> bool:
    """Return True if observations are images, that is, a Box of 3 dimensions."""
    return isinstance(space, spaces.Box) and len(space.shape) == _IMAGE


def moments_size(space: spaces.Space[Any], normalize_images: bool) -> int:
    """Return the number of observation means of a policy: 0 for images unless they are normalized."""
    return observation_size(space) if normalize_images or not is_image(space) else 0


def is_small(space: spaces.Space[Any]) -> bool:
    """Return True if a part of an observation is a Box that is flattened, of any number of dimensions."""
    return isinstance(space, spaces.Box) and math.prod(space.shape) <= SMALL_IMAGE


def observation_shape(space: spaces.Space[Any]) -> tuple[int, ...]:
    """Return the shape of an observation as policies read it: (C, H, W) of an image, otherwise (size,)."""
    return space.shape if isinstance(space, spaces.Box) and is_image(space) else (observation_size(space),)


def observation_dtype(space: spaces.Space[Any]) -> type[np.generic]:
    """Return the type in which observations are stored: float64, uint8 (images only) or float32."""
    unchanged = (np.float64, np.uint8) if is_image(space) else (np.float64,)
    return next((kind for kind in unchanged if space.dtype == kind), np.float32)


def flatten(space: spaces.Space[Any], observation: Any) -> NDArray[Any]:
    """Flatten one observation to a vector as Gymnasium does (one-hot for Discrete)."""
    if isinstance(space, spaces.Box):
        return np.asarray(observation).reshape(-1)
    return np.asarray(spaces.flatten(space, observation), dtype=np.float32)


def as_batch(space: spaces.Space[Any], observation: Any) -> tuple[NDArray[Any], bool]:
    """Convert an observation, or a batch from a vector environment, to an array with the batch first.

    Images may have their channels last.

    Returns:
        The array, shape (n, *observation_shape), of float64 or the type of an image; and True if
        ``observation`` was a batch.

    Raises:
        InputError: it is neither an observation of the space nor a batch of them, or it contains NaN.
    """
    if is_structured(space):
        found = [as_batch(part, observation[key]) for key, part in parts_of(space)]
        if len({len(array) for array, _ in found}) > 1:
            raise InputError("the parts of the observation are batches of different sizes")
        rows = np.concatenate([array.reshape(len(array), -1) for array, _ in found], axis=1)
        return rows.astype(np.float32).astype(np.float64), any(batched for _, batched in found)
    array, batched = _numbers(space, _only_image(observation) if is_image(space) else observation)
    if is_image(space):
        return array.astype(space.dtype).reshape(-1, *observation_shape(space)), batched
    rows = array if batched else array[None]
    if isinstance(space, spaces.Box):
        with np.errstate(over="ignore"):  # the same rounding as in training
            stored = rows.reshape(len(rows), -1).astype(observation_dtype(space))
        return stored.astype(np.float64), batched
    return np.stack([flatten(space, row) for row in rows]).astype(np.float64), batched


def _only_image(observation: Any) -> Any:
    """Return the image of an observation, which may be a Dict or Tuple with text or an action mask."""
    if not isinstance(observation, Mapping | tuple):
        return observation
    named = observation.items() if isinstance(observation, Mapping) else enumerate(observation)
    parts = [part for key, part in named if key != MASK and np.asarray(part).dtype.kind != "U"]
    return _only_image(parts[0]) if len(parts) == 1 else observation


def _numbers(space: spaces.Space[Any], observation: Any) -> tuple[NDArray[Any], bool]:
    """Return an observation of one part, or a batch, as an array; and True if it is a batch."""
    array, shape = np.array(observation), space.shape or ()
    batched = array.ndim > len(shape)
    if array.dtype.kind not in "buif" or (array.dtype.kind == "f" and np.isnan(array).any()):
        raise InputError(f"the observation is not numeric or contains NaN: expected {short(space)}")
    own = array.shape[int(batched) :]
    if own == shape:
        return array, batched
    if is_image(space) and own == (*shape[1:], shape[0]):  # channels last, as from the environment itself
        return np.moveaxis(array, -1, -3), batched
    raise InputError(
        f"observation shape mismatch: the policy expects {shape}, or a batch of these, not {array.shape}"
    )


def parts_of(space: Any) -> list[tuple[Any, spaces.Space[Any]]]:
    """Return keys and spaces in the order of Gymnasium's flattening."""
    return list(space.items()) if isinstance(space, spaces.Dict) else list(enumerate(space))


def is_structured(space: spaces.Space[Any]) -> bool:
    """Return True if the space is a Dict or Tuple."""
    return isinstance(space, spaces.Dict | spaces.Tuple)


def leaves_of(space: spaces.Space[Any]) -> list[spaces.Space[Any]]:
    """Return the innermost parts of a space in the order of outputs, or the space if it has no parts."""
    if not is_structured(space):
        return [space]
    return [leaf for _, part in parts_of(space) for leaf in leaves_of(part)]


def is_vector(space: spaces.Space[Any]) -> bool:
    """Return True if observations are vectors without flattening."""
    return isinstance(space, spaces.Box) and len(space.shape) == 1


def describe(space: spaces.Space[Any]) -> Description:
    """Return the space as plain JSON values. :func:`restore` is the inverse."""
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
    """Return the space from the output of :func:`describe`."""
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
    """Return a copy of Gymnasium's own classes.

    Workers cannot import a class that a package creates dynamically. Unsupported kinds of spaces are
    returned unchanged.
    """
    try:
        copy = restore(describe(space))
    except InputError:
        return space
    # Infinite bounds of integers are stored as the limits of the type.
    if isinstance(space, spaces.Box) and isinstance(copy, spaces.Box):
        copy.bounded_below, copy.bounded_above = space.bounded_below, space.bounded_above
    return copy


def same(first: spaces.Space[Any], second: spaces.Space[Any]) -> bool:
    """Return True if two spaces contain the same values, up to the precision of their bounds."""
    if isinstance(first, spaces.Box) and isinstance(second, spaces.Box):
        return bool(
            first.shape == second.shape
            and np.issubdtype(first.dtype, np.floating) == np.issubdtype(second.dtype, np.floating)
            and np.allclose(first.low, second.low, rtol=1e-5)
            and np.allclose(first.high, second.high, rtol=1e-5)
        )
    return bool(first == second)


def _bounds(values: NDArray[Any]) -> list[str]:
    # As text, because JSON has no infinities, and to preserve all digits.
    kind = int if values.dtype.kind in "iu" else float
    return [repr(kind(value)) for value in values.reshape(-1)]


def _numbers_of(bounds: list[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Inverse of :func:`_bounds`."""
    return np.array([(int if dtype.kind in "iu" else float)(text) for text in bounds], dtype)


def short(thing: object) -> str:
    """Return the repr of an object for messages, in one line of at most 60 characters."""
    text = " ".join(repr(thing).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
