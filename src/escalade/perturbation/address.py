"""Randomness by address: every random number of a run is a hash of its position.

No generator carries state from one generation to the next. A worker that joins late and a run that resumes
from its checkpoint therefore draw exactly the same numbers.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Stream(IntEnum):
    """Purpose of a random number. Different purposes of one run seed draw independent numbers."""

    NOISE = 1
    EPISODE = 2
    EVALUATION = 3
    CONFIRMATION = 4
    ACTION = 5
    INITIALISATION = 6
    FRESH_EVALUATION = 7
    RESTART = 8
    REFERENCE = 10
    CENTER = 11
    CHOICE = 12
    STRATEGY = 16


_TRAINING = (Stream.EPISODE, Stream.REFERENCE)
_JUDGING = (Stream.EVALUATION, Stream.CONFIRMATION, Stream.FRESH_EVALUATION)
_HELD_OUT = 15 * 2**27
_QUARTER = 2**25


def hash64(*words: ArrayLike) -> NDArray[np.uint64]:
    """Mix integer words into uniformly distributed 64-bit integers.

    The finalizer of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
    generators"), applied once per word. Words broadcast against each other.
    """
    state = np.zeros((), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in words:
            state = (state ^ np.asarray(word).astype(np.uint64)) + _GOLDEN
            state = (state ^ (state >> np.uint64(30))) * _MIX_1
            state = (state ^ (state >> np.uint64(27))) * _MIX_2
            state = state ^ (state >> np.uint64(31))
    return np.asarray(state)


def seeds(run_seed: int, stream: Stream, *words: ArrayLike) -> NDArray[np.int64]:
    """Return seeds in [0, 2**31), the range that both Gymnasium and EnvPool accept.

    The last sixteenth of the range is reserved for episodes that judge a policy, a quarter of it for each of
    their three streams. Whatever the run's seed, these streams share no seed with training or each other.
    """
    drawn = (hash64(run_seed, int(stream), *words) >> np.uint64(33)).astype(np.int64)
    if stream in _JUDGING:
        return _HELD_OUT + _JUDGING.index(stream) * _QUARTER + drawn % _QUARTER
    if stream in _TRAINING:
        return np.asarray(np.where(drawn < _HELD_OUT, drawn, drawn - _HELD_OUT))
    return drawn


def normals(*words: ArrayLike) -> NDArray[np.float64]:
    """Return standard normal numbers, one per broadcast address (Box and Muller 1958)."""
    first, second = hash64(*words, 1), hash64(*words, 2)
    radius = _fraction(first)
    angle = (second >> np.uint64(11)).astype(np.float64) * (2.0 * np.pi * 2.0**-53)
    return np.asarray(np.sqrt(-2.0 * np.log(radius)) * np.cos(angle))


def gumbels(*words: ArrayLike) -> NDArray[np.float64]:
    """Return standard Gumbel numbers, one per broadcast address.

    The index of the largest sum of logit and Gumbel number is distributed as the logits' softmax
    (Gumbel 1954).
    """
    return np.asarray(-np.log(-np.log(_fraction(hash64(*words)))))


def _fraction(drawn: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return numbers between 0 and 1: 53 bits, shifted by half a step so that no logarithm is of zero."""
    return np.asarray(((drawn >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
