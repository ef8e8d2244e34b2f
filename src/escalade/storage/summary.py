"""The numbers of summary.json: what each may be, declared once for all that read the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from escalade.storage.records import Count, Seconds, checked
from escalade.storage.tensors import Damaged

_ALWAYS: Mapping[str, Any] = {
    "generations": Count,
    "episodes": Count,
    "env_steps": Count | None,
    "seconds": Seconds,
    "eval_return_mean": float | None,
    "eval_return_std": float | None,
    "eval_episodes": Count,
    "best_return": float | None,
    "best_generation": Count | None,
    "target_return": float | None,
    "solved": bool,
    "stop_reason": str,
    "params_sha256": str,
    "versions": dict[str, str],
}
"""Entries of every run's summary, and their types."""
_SOMETIMES: Mapping[str, Any] = {
    "env": str,
    "module": str,
    "network": str,
    "strategy": str,
    "seed": Count,
    "parameters": Count,
    "failed": Count,
    "eval_episodes_total": Count,
    "eval_failed": Count,
    "eval_failed_total": Count,
    "eval_steps": Count | None,
    "updates_since_evaluation": Count | None,
    "center": Count | None,
    "eval_center": Count | None,
    "workers": Count,
}
"""Entries of some runs, or of later versions."""


def check_summary(found: Any) -> dict[str, Any]:
    """The contents of a summary.json; entries that are not known here are left as they are.

    Raises:
        Damaged: an entry is missing, or is of another type or beyond its range.
    """
    if not isinstance(found, dict):
        raise Damaged("it is no table")
    if missing := _ALWAYS.keys() - found.keys():
        raise Damaged(f"it has no {min(missing)!r}")
    known = {name: kind for name, kind in {**_ALWAYS, **_SOMETIMES}.items() if name in found}
    return found | {name: checked(kind, found[name], name) for name, kind in known.items()}
