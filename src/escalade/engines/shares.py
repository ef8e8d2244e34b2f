"""The share of a job that a worker should have in its hands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def max_items_per_worker(share: int, info: Mapping[str, Any]) -> int:
    """Items that keep a worker busy, when ``share`` items are an even part of the whole.

    Args:
        share: items of the job, divided by the workers; at least 1.
        info: what the worker's work says of itself; see :meth:`escalade.engines.base.Work.info`.
    """
    slots = int(info["slots"])
    if info.get("refills", True):
        return min(share, slots + max(1, slots // 2))  # half as many again in reserve
    # Waves of one size: a last one that is nearly empty would cost as long as a full one.
    waves = -(-share // slots)
    return -(-share // waves)
