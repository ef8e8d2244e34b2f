"""Long sums, shared among this machine's cores without changing a bit."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from escalade.support.machine import cores

SMALLEST = 2**13  # floats; shorter blocks cost more in calls than in additions
THREADS_FROM = 2**26  # additions: some 30 ms of one core


def by_blocks(dimension: int, terms: int, largest: int, add: Callable[[int, int], None]) -> None:
    """Call ``add(low, high)`` for blocks that together are all of ``dimension`` parameters.

    A sum is shared by parameters, not by terms: every parameter's terms are added in the same order, so
    the bits do not depend on how many cores there are.

    Args:
        dimension: how many parameters.
        terms: how many numbers are added to each.
        largest: most parameters in a block.
        add: adds all terms to the parameters from ``low`` to ``high``; it may be called on other threads.
    """
    import torch

    threads, size = 1, largest
    # Where torch may use several threads itself, it does so.
    if terms * dimension >= THREADS_FROM and torch.get_num_threads() == 1:
        threads = min(cores(), -(-dimension // SMALLEST))
        size = min(largest, (-(-dimension // threads) // 64 + 1) * 64)
    blocks = [(low, min(low + size, dimension)) for low in range(0, dimension, size)]
    if threads == 1:
        for block in blocks:
            add(*block)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="escalade-sum") as pool:
        for done in [pool.submit(add, *block) for block in blocks]:
            done.result()
