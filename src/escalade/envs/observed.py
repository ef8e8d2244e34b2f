"""Checks of what an environment gives, against what its observation space says."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escalade.envs.spaces import short
from escalade.errors import InputError

RESET = "an observation and a dict (Gymnasium's `reset`)"
STEP = "an observation, a reward, terminated, truncated and a dict (Gymnasium's `step`)"

_WEIGHED = "mo_gymnasium.wrappers:LinearReward(weight=np.array([0.5, 0.5]))"


class Misfit(Exception):
    """A value that ``reset`` or ``step`` returned is not of its kind; the message says how."""


def check_reset(given: Any, env: str) -> None:
    """Refuse what is no pair of observation and info, as environments of the old Gym return.

    Raises:
        InputError: names the environment.
    """
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], dict)):
        raise InputError(f"environment {env}: `reset` must return {RESET}, not {short(given)}")


def check_step(given: Any, env: str) -> None:
    """Refuse what are not the five values of a step.

    Raises:
        InputError: names the environment.
    """
    if not (isinstance(given, tuple) and len(given) == 5 and isinstance(given[4], dict)):
        count = f"{len(given)} values" if isinstance(given, tuple) and len(given) != 5 else short(given)
        raise InputError(f"environment {env}: `step` must return {STEP}, not {count}")


def one_number(value: Any) -> float:
    """Return a reward, or an entry of an info, as a float.

    Anything that holds one number will do: a NumPy or torch scalar, or an array of size 1. Text will not,
    though Python's ``float`` reads it.

    Raises:
        Misfit: it is not one number.
    """
    try:
        number = _item(value)
        if not isinstance(number, str | bytes | bytearray):
            return float(number)
    except (TypeError, ValueError, RuntimeError):
        pass
    several = isinstance(value, list | tuple) or getattr(value, "shape", ()) != ()
    fix = f": weigh them, as in `wrappers` {_WEIGHED}" if several else ""
    raise Misfit(f"a reward must be one number, not {short(value)}{fix}")


def one_bool(value: Any, name: str) -> bool:
    """Return ``terminated`` or ``truncated``, whichever is called ``name``, as a bool.

    Other values are refused, for any text is true, ``"no"`` too.

    Raises:
        Misfit: it is neither a bool nor an array that holds one.
    """
    try:
        end = _item(value)
    except (TypeError, ValueError, RuntimeError):
        end = None
    if isinstance(end, bool):
        return end
    raise Misfit(f"`{name}` must be True or False, not {short(value)}")


def _item(value: Any) -> Any:
    """Return the Python value that a NumPy or torch scalar, or an array of size 1, holds."""
    return value.item() if hasattr(value, "item") else value


def check_observation(space: spaces.Space[Any], observation: Any, env: str, method: str) -> None:
    """Refuse an observation of another shape or type than its space says.

    Bounds of real numbers are not looked at: many environments overstep them, and nothing depends on them.
    Nor is NaN: it is a matter of the episode, whose return it spoils.

    Args:
        space: the environment's observation space.
        observation: what the environment gave.
        env: the environment, for the message.
        method: what gave it: ``reset`` or ``step``.

    Raises:
        InputError: names the environment, what it gave and what its space says.
    """
    try:
        _check(space, observation, "")
    except Misfit as problem:
        raise InputError(
            f"environment {env}: `{method}` gave an observation {problem}: mend the environment or its "
            f"`observation_space`{_conversion(space, observation)}"
        ) from None


def _conversion(space: spaces.Space[Any], observation: Any) -> str:
    """Name the wrapper that helps if real numbers come from a Box of whole ones."""
    array = _array(observation) if isinstance(space, spaces.Box) else None
    if array is None or array.shape != space.shape or array.dtype.kind != "f":
        return ""
    return f", or give `wrappers` gymnasium.wrappers:DtypeObservation('{array.dtype}')"


def _check(space: spaces.Space[Any], value: Any, where: str) -> None:
    if isinstance(space, spaces.Dict):
        if not isinstance(value, dict) or set(value) != set(space.keys()):
            raise Misfit(f"{where}with the keys of {short(value)}, where its space has {list(space.keys())}")
        for key, part in space.items():
            _check(part, value[key], f"{where}whose {key!r} is ")
    elif isinstance(space, spaces.Tuple):
        if not isinstance(value, tuple | list) or len(value) != len(space):
            raise Misfit(f"{where}that is {short(value)}, where its space has {len(space)} parts")
        for place, part in enumerate(space):
            _check(part, value[place], f"{where}whose part {place} is ")
    else:
        _check_array(space, value, where)


def _check_array(space: spaces.Space[Any], value: Any, where: str) -> None:
    array = _array(value)
    if array is None:
        raise Misfit(f"{where}{short(value)}, which holds no numbers")
    if array.shape != space.shape:
        raise Misfit(f"{where}of shape {array.shape}, where its space has {space.shape}")
    kind = np.dtype(space.dtype)
    if kind.kind == "f":
        return
    if array.dtype.kind == "f":
        raise Misfit(f"{where}of {array.dtype}, where its space has {kind}")
    if not space.contains(array.astype(kind)[()]) or (array != array.astype(kind)).any():
        raise Misfit(f"{where}{short(value)}, which is not in {short(space)}")


def _array(value: Any) -> NDArray[Any] | None:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return array if array.dtype.kind in "fiub" else None
