"""Rewards and ends as an environment gives them: one number, and a boolean."""

from __future__ import annotations

from typing import Any

from escalade.envs.spaces import short

_WEIGHED = "mo_gymnasium.wrappers:LinearReward(weight=np.array([0.5, 0.5]))"


class Misfit(Exception):
    """A value that ``reset`` or ``step`` returned is not of its kind; the message says how."""


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
