"""Torch's vmap: what it refuses, and the operations that it runs for one member after the other."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import torch

_REFUSALS = (
    "vmap: ",
    "vmap over ",
    "Batching rule not implemented",
    "Cannot access data pointer",
    "Batch norm got a batched tensor",
    "doesn't match the broadcast shape",
    "must override the setup_context",
)
_SLOW = re.compile(r"There is a performance drop .* batching rule for (?:aten::)?(\w+)")
_within: Final[Any] = torch._C._functorch
_recording = Lock()


def is_refusal(problem: RuntimeError) -> bool:
    """Tell whether vmap raised ``problem`` because it cannot batch a module."""
    return any(words in str(problem) for words in _REFUSALS)


class _Unwarned:
    """Turns off vmap's warnings of slow operations while any thread is inside, unless they are recorded."""

    recording = False

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            _within._set_vmap_fallback_warning_enabled(self.recording)

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._inside -= 1
            _within._set_vmap_fallback_warning_enabled(not self._inside or self.recording)


unwarned: Final = _Unwarned()
"""A block in which vmap does not warn of slow operations, which would end a run under ``-W error``."""


@contextmanager
def slow_operations() -> Iterator[set[str]]:
    """A block that fills a set, at its end, with the operations of which vmap warned in :data:`unwarned`."""
    found: set[str] = set()
    with _recording:  # two threads that record at once would not put back what shows warnings
        unwarned.recording = True
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.filterwarnings("always", message="There is a performance drop")
                yield found
        finally:
            unwarned.recording = False
            for one in caught:
                slow = _SLOW.match(str(one.message))
                if slow:
                    found.add(slow[1])
                else:
                    warnings.showwarning(
                        one.message, one.category, one.filename, one.lineno, one.file, one.line
                    )
