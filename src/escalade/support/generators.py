"""The global random number generators, which a user's code may draw from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def generators_seeded(seed: int) -> Iterator[None]:
    """Seed ``random``, ``numpy.random`` and ``torch`` with ``seed``, below 2**32; then put them back."""
    python, numpy, pytorch = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        random.seed(seed)
        np.random.seed(seed)
        torch.default_generator.manual_seed(seed)  # not torch.manual_seed, which formats a stack trace
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(pytorch)
