"""Noise sources by the value of ``perturbation``: ``full``, or ``low-rank:R`` of rank R."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from escalade.errors import InputError
from escalade.perturbation.low_rank import LowRank, noise_length
from escalade.perturbation.population import NoiseSource
from escalade.perturbation.table import NoiseTable, table_size

FULL = "full"
LOW_RANK = "low-rank"
# The smallest rank that solved HalfCheetah with both networks on all seeds: benchmarks/deep.md.
DEFAULT_RANK = 4


def rank_of(text: str) -> int:
    """Return the rank of a ``perturbation``: 0 for full noise, 4 for ``low-rank`` without a rank.

    Raises:
        InputError: ``text`` is neither ``full`` nor ``low-rank:R``.
    """
    name, _, rank = str(text).partition(":")
    if text == FULL:
        return 0
    if name != LOW_RANK or not (text == LOW_RANK or (rank.isdecimal() and 1 <= int(rank) < 2**31)):
        raise InputError(
            f"unknown `perturbation` {text!r}: it must be full, or low-rank:R with a rank R of at least 1"
        )
    return int(rank or DEFAULT_RANK)


def make_source(text: str, seed: int, shapes: Sequence[tuple[int, ...]]) -> NoiseSource:
    """Return the source that ``perturbation`` names, on a noise table generated from ``seed``.

    Args:
        text: ``full``, ``low-rank`` or ``low-rank:R``.
        seed: Seed of the table.
        shapes: Shape of each parameter, in the order of the flat vector.

    Raises:
        InputError: ``text`` names no source.
    """
    rank = rank_of(text)
    if rank == 0:
        return NoiseTable(seed, table_size(sum(map(prod, shapes))))
    table = NoiseTable(seed, table_size(noise_length(shapes, rank)))
    return LowRank(table, rank, tuple(tuple(shape) for shape in shapes))
