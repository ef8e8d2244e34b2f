"""Torch's vmap: what it refuses, and the operations that it runs for one member after the other."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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

_within._set_vmap_fallback_warning_enabled(False)  # a warning would end a run under ``-W error``


def is_refusal(problem: RuntimeError) -> bool:
    """Return whether vmap raised ``problem`` because it cannot batch a module."""
    return any(words in str(problem) for words in _REFUSALS)


@contextmanager
def slow_operations() -> Iterator[set[str]]:
    """A block that fills a set, at its end, with the operations that vmap has no rule for."""
    found: set[str] = set()
    _within._set_vmap_fallback_warning_enabled(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", message="There is a performance drop")
            yield found
    finally:
        _within._set_vmap_fallback_warning_enabled(False)
    for one in caught:
        if slow := _SLOW.match(str(one.message)):
            found.add(slow[1])
        else:
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)
