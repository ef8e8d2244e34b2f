"""The global random number generators, which user code may draw from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_generators(seed: int) -> None:
    """Seed the global generators of ``random``, ``numpy.random`` and ``torch`` with ``seed``, below 2**32."""
    random.seed(seed)
    np.random.seed(seed)
    # torch.manual_seed would format a stack trace each time, in case a GPU is used later.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


class Generators:
    """A snapshot of the states of the global random number generators."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), np.random.get_state()
        self._torch = torch.get_rng_state()
        on_gpus = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        self._devices = torch.cuda.get_rng_state_all() if on_gpus else []

    def restore(self) -> None:
        """Restore the states."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        torch.set_rng_state(self._torch)
        if self._devices:
            torch.cuda.set_rng_state_all(self._devices)


@contextmanager
def generators_kept() -> Iterator[None]:
    """Restore the states of the global generators afterwards."""
    found = Generators()
    try:
        yield
    finally:
        found.restore()


@contextmanager
def generators_seeded(seed: int) -> Iterator[None]:
    """Seed the global generators with ``seed``, below 2**32, and restore their states afterwards."""
    with generators_kept():
        seed_generators(seed)
        yield
