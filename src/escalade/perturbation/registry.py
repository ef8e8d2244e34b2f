"""Noise sources by name, as ``perturbation`` gives them: ``full``, or ``low-rank:R`` of rank R."""

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
    """The rank that ``perturbation`` asks for; 0 is full noise, and ``low-rank`` alone is rank 4.

    Raises:
        InputError: it is neither ``full`` nor ``low-rank:R``.
    """
    name, _, rank = str(text).partition(":")
    if text == FULL:
        return 0
    if name != LOW_RANK or not (text == LOW_RANK or (rank.isdecimal() and 1 <= int(rank) < 2**31)):
        raise InputError(
            f"unknown `perturbation` {text!r}: it must be full, or low-rank:R with a rank R from 1 up"
        )
    return int(rank or DEFAULT_RANK)


def make_source(text: str, seed: int, shapes: Sequence[tuple[int, ...]]) -> NoiseSource:
    """The source that ``perturbation`` names, on a table of noise made from ``seed``.

    Args:
        text: ``full``, ``low-rank`` or ``low-rank:R``.
        seed: of the table.
        shapes: of each parameter, in the order of the flat vector.

    Raises:
        InputError: there is no such source.
    """
    rank = rank_of(text)
    if rank == 0:
        return NoiseTable(seed, table_size(sum(map(prod, shapes))))
    table = NoiseTable(seed, table_size(noise_length(shapes, rank)))
    return LowRank(table, rank, tuple(tuple(shape) for shape in shapes))
