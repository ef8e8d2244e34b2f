"""The results of a run: its summary, and the digest that is equal for bit-identical parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.strategies.centers import Centers
from escalade.support.machine import versions
from escalade.training.loop import Loop


def updates_of(summary: Mapping[str, Any]) -> int | None:
    """Return the updates of the center in a finished run: its generations, less one if it was solved."""
    generations = summary.get("generations")
    return generations - bool(summary.get("solved")) if isinstance(generations, int) else None


def summarize(loop: Loop, reason: str, what: Mapping[str, Any], where: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of summary.json.

    Args:
        loop: The finished run.
        reason: Why it ended.
        what: Facts about the trained policy or module.
        where: Facts about the machine.
    """
    done, total, steps = loop.progress, loop.progress.total, loop.objective.counts_steps
    best_return, best_generation = loop.objective.best_seen(done)
    return {
        **what,
        "parameters": loop.strategy.dimension,
        "generations": done.rows,
        "episodes": total.episodes,
        "env_steps": total.env_steps if steps else None,
        "failed": total.failed,
        "eval_episodes_total": total.eval_episodes,
        "eval_failed_total": total.eval_failed,
        "eval_steps": total.eval_steps if steps else None,
        "seconds": round(total.seconds, 4),  # as in rows
        "steps_per_second": round(total.env_steps / max(total.seconds, 1e-9), 1) if steps else None,
        "eval_return_mean": done.eval_return_mean,
        "eval_return_std": done.eval_return_std,
        "eval_episodes": done.eval_episodes,
        "eval_failed": done.eval_failed,
        "updates_since_evaluation": None if done.evaluated is None else done.generation - done.evaluated,
        "best_return": best_return,
        "best_generation": best_generation,
        "target_return": loop.limits.target_return,
        "solved": done.solved,
        **_centers(loop),
        "stop_reason": reason,
        "params_sha256": params_sha256(loop.strategy.center.detach().cpu().numpy(), loop.objective.learnt()),
        **where,
        "versions": versions(),
    }


def _centers(loop: Loop) -> dict[str, Any]:
    """Return the numbers of the center in policy.safetensors and of the one evaluated last, of several."""
    if not isinstance(loop.strategy, Centers):
        return {}
    return {"center": loop.strategy.drawn, "eval_center": loop.progress.eval_center}


def params_sha256(center: NDArray[np.float32], learnt: Iterable[NDArray[np.float64]]) -> str:
    """Return the digest of the center and of the arrays that the objective learned."""
    total = hashlib.sha256(np.ascontiguousarray(center).data)
    for part in learnt:
        total.update(part.astype(np.float64).tobytes())
    return total.hexdigest()
