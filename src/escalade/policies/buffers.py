"""Buffers and attributes of a module at one moment, to put back later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

_TORCHS = frozenset(vars(nn.Module()))
"""Attributes that torch gives to every module."""

Value = Tensor | complex | str | None  # a complex number may be a float, an integer or a truth value


class Kept:
    """A module's buffers and its attributes at one moment."""

    def __init__(self, module: nn.Module) -> None:
        self.buffers, self.attributes = Buffers(module), Attributes(module)

    def restore(self) -> None:
        """Put all of them back."""
        self.buffers.restore()
        self.attributes.restore()

    def changed(self) -> bool:
        """Tell whether there are others, or one has other numbers."""
        return self.buffers.changed() or self.attributes.changed()


class Buffers:
    """The tensors that a module's buffers are at one moment, and a copy of their numbers."""

    def __init__(self, module: nn.Module) -> None:
        self._tables = [(part._buffers, dict(part._buffers)) for part in module.modules()]
        self._numbers = _Numbers(value for _, known in self._tables for value in known.values())

    def restore(self) -> None:
        """Put all of them back."""
        for table, known in self._tables:
            if table or known:
                table.clear()
                table.update(known)
        self._numbers.restore()

    def changed(self) -> bool:
        """Tell whether there are others, or one has other numbers."""
        return any(self._numbers.differ(known, table) for table, known in self._tables)


class Attributes:
    """The tensors, numbers and texts of a module's attributes at one moment; some modules remember there."""

    def __init__(self, module: nn.Module) -> None:
        owners = [vars(part) for part in module.modules()]
        self._tables = [(own, _simple(own), frozenset(own)) for own in owners]
        self._numbers = _Numbers(value for _, known, _ in self._tables for value in known.values())

    def restore(self) -> None:
        """Put all of them back, and remove those that were made since."""
        for own, known, names in self._tables:
            for name in own.keys() - names if len(own) > len(names) else ():
                del own[name]
            own.update(known)
        self._numbers.restore()

    def changed(self) -> bool:
        """Tell whether there are others, or one has other numbers."""
        return any(self._numbers.differ(known, _simple(own)) for own, known, _ in self._tables)


class _Numbers:
    """Copies of what tensors hold. Their count of writes is no help: batch_norm does not count its own."""

    def __init__(self, values: Iterable[Value]) -> None:
        tensors = (value for value in values if isinstance(value, Tensor))
        self._saved = {id(value): (value, value.detach().clone()) for value in tensors}

    def restore(self) -> None:
        """Write them back."""
        with torch.no_grad():
            for value, saved in self._saved.values():
                value.copy_(saved)

    def differ(self, before: dict[str, Any], now: dict[str, Any]) -> bool:
        """Tell whether a table has other names than before, or other numbers."""
        return before.keys() != now.keys() or not all(
            self._holds(value, now[name]) for name, value in before.items()
        )

    def _holds(self, value: Value, now: Value) -> bool:
        """Tell whether ``now``, in the place of ``value``, has its numbers."""
        if isinstance(value, Tensor) and isinstance(now, Tensor):
            return _same(now, self._saved[id(value)][1])
        return value is now or (type(value) is type(now) and value == now)


def _simple(attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in attributes.items()
        if name not in _TORCHS and (value is None or isinstance(value, Tensor | int | float | complex | str))
    }


def _same(now: Tensor, saved: Tensor) -> bool:
    if now.shape != saved.shape or now.dtype != saved.dtype:
        return False
    try:
        return bool(((now == saved) | ((now != now) & (saved != saved))).all())  # noqa: PLR0124 - NaN is NaN
    except RuntimeError:  # what vmap left there, or a type that cannot be compared: it was written to
        return False
