"""The buffers of a module at one moment, to put back later."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Buffers:
    """The tensors that a module's buffers are at one moment, and a copy of their numbers."""

    def __init__(self, module: nn.Module) -> None:
        self._tables = [(part._buffers, dict(part._buffers)) for part in module.modules()]
        every = (value for _, known in self._tables for value in known.values() if value is not None)
        self._saved = {id(value): (value, value.detach().clone()) for value in every}
        self._versions = {key: _version(value) for key, (value, _) in self._saved.items()}

    def restore(self) -> None:
        """Put all of them back."""
        for table, known in self._tables:
            if table or known:
                table.clear()
                table.update(known)
        with torch.no_grad():
            for key, (value, saved) in self._saved.items():
                if not self._untouched(value):
                    value.copy_(saved)
                    self._versions[key] = _version(value)

    def changed(self) -> bool:
        """Tell whether there are others, or one has other numbers."""
        return any(
            table.keys() != known.keys()
            or not all(self._holds(value, table[name]) for name, value in known.items())
            for table, known in self._tables
        )

    def _holds(self, value: Tensor | None, now: Tensor | None) -> bool:
        """Tell whether ``now``, in the place of ``value``, has its numbers."""
        if value is None or now is None:
            return value is now
        return (now is value and self._untouched(value)) or _same(now, self._saved[id(value)][1])

    def _untouched(self, value: Tensor) -> bool:
        version = _version(value)
        return version is not None and version == self._versions[id(value)]


def _version(value: Tensor) -> int | None:
    """The number of writes to a tensor so far; None of one that does not count them."""
    return None if value.is_inference() else value._version


def _same(now: Tensor, saved: Tensor) -> bool:
    if now.shape != saved.shape or now.dtype != saved.dtype:
        return False
    try:
        return bool(((now == saved) | ((now != now) & (saved != saved))).all())  # noqa: PLR0124 - NaN is NaN
    except RuntimeError:  # what vmap left there, or a type that cannot be compared: it was written to
        return False
