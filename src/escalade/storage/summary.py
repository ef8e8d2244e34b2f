"""Validation of summary.json."""

from __future__ import annotations

import sys
from typing import Any

_COUNTS = ("generations", "episodes", "env_steps", "seconds", "eval_episodes", "best_generation", "workers")
_NUMBERS = ("eval_return_mean", "eval_return_std", "best_return", "target_return")
_ALWAYS = {"generations": int, "seconds": float, "eval_episodes": int, "solved": bool, "stop_reason": str}
_MOST = 10**12


def is_summary(found: Any) -> bool:
    """Return True if ``found`` is a valid summary: all required keys, with numbers in range."""
    if not isinstance(found, dict) or not {*_COUNTS, *_NUMBERS} <= found.keys():
        return False
    if any(found.get(name) is None for name in _ALWAYS):
        return False
    counts = (found[name] for name in _COUNTS)
    numbers = (found[name] for name in _NUMBERS)
    return (
        isinstance(found["solved"], bool)
        and isinstance(found["stop_reason"], str)
        and all(_is_number(value) and 0 <= value <= _MOST for value in counts if value is not None)
        and all(_is_number(value) for value in numbers if value is not None)
        and (found["eval_return_mean"] is None) == (found["eval_return_std"] is None)
    )


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) <= sys.float_info.max
