"""Buffers and attributes of a module at one moment, to put back later."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import torch
from torch import Tensor, nn

_TORCHS = frozenset(vars(nn.Module()))
"""Attributes that torch gives to every module."""

_KINDS = (int, float, str, tuple, complex, Tensor)
"""Types of simple attributes and buffers, beside None."""

_MOST = 2**20
"""Numbers in an attribute that may be a memory; larger ones are data."""


def own_memory(module: nn.Module) -> None:
    """Give each number of a buffer memory of its own: those of an expanded view cannot be written to."""
    written: dict[int, Tensor] = {}
    for part in nn.Module.modules(module):
        for name, value in part._buffers.items():
            if isinstance(value, Tensor) and value.layout == torch.strided and 0 in value.stride():
                part._buffers[name] = written.setdefault(id(value), value.contiguous().clone())


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
        self._tables = [(part._buffers, dict(part._buffers)) for part in nn.Module.modules(module)]
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
    """The tensors, numbers, texts and tuples of them in a module's attributes at one moment.

    Some modules remember there. Left as they are: lists, dicts and other objects, tensors of more than a
    million numbers, and what shares its memory with a parameter.
    """

    def __init__(self, module: nn.Module) -> None:
        owners = [vars(part) for part in nn.Module.modules(module)]
        evolved = {part.untyped_storage().data_ptr() for part in nn.Module.parameters(module)}
        self._tables = [(own, _simple(own, evolved), frozenset(own)) for own in owners]
        self._numbers = _Numbers(
            (value for _, known, _ in self._tables for value in known.values()), counted=True
        )

    def restore(self) -> None:
        """Put all of them back, and remove those that were made since."""
        for own, known, names in self._tables:
            for name in _simple(own).keys() - names:
                del own[name]
            own.update(known)
        self._numbers.restore()

    def changed(self) -> bool:
        """Tell whether there are others, or one has other numbers."""
        return any(
            _simple(own).keys() - names
            or self._numbers.differ(known, {name: own.get(name) for name in known})
            for own, known, names in self._tables
        )


class _Numbers:
    """Copies of what tensors hold.

    Where writes are ``counted``, tensors that nobody wrote to are left alone: some cannot be written to, and
    data are large. Those of buffers are not: batch_norm does not count its own.
    """

    def __init__(self, values: Iterable[Any], counted: bool = False) -> None:
        tensors = (part for value in values for part in _tensors(value))
        self._saved = {id(value): (value, value.detach().clone()) for value in tensors}
        self._writes = {key: _writes(value) for key, (value, _) in self._saved.items()} if counted else {}

    def restore(self) -> None:
        """Write them back."""
        with torch.no_grad():
            for key, (value, saved) in self._saved.items():
                if not self._untouched(value):
                    value.copy_(saved)
                    if key in self._writes:
                        self._writes[key] = _writes(value)

    def differ(self, before: dict[str, Any], now: dict[str, Any]) -> bool:
        """Tell whether a table has other names than before, or other numbers."""
        return before.keys() != now.keys() or not all(
            self._holds(value, now[name]) for name, value in before.items()
        )

    def _holds(self, value: Any, now: Any) -> bool:
        """Tell whether ``now``, in the place of ``value``, has its numbers."""
        kind = _kind(value)
        if kind is not _kind(now):
            return False
        if kind is Tensor:
            return (now is value and self._untouched(value)) or _same(now, self._saved[id(value)][1])
        if kind is tuple:
            return tuple.__len__(value) == tuple.__len__(now) and all(
                map(self._holds, tuple.__iter__(value), tuple.__iter__(now))
            )
        return value is now or (type(value) is type(now) and kind.__eq__(value, now))

    def _untouched(self, value: Tensor) -> bool:
        return id(value) in self._writes and self._writes[id(value)] == _writes(value)


def _simple(attributes: dict[str, Any], evolved: Collection[int] = ()) -> dict[str, Any]:
    return {
        name: value
        for name, value in attributes.items()
        if name not in _TORCHS and _may_remember(value, evolved)
    }


def _kind(value: Any) -> Any:
    """Return the simple type that a value's class derives from, or None.

    Its methods read the value: those of a subclass may do anything, and so may its ``__class__``.
    """
    own = type(value)
    for kind in _KINDS:
        if issubclass(own, kind):
            return kind
    return None


def _may_remember(value: Any, evolved: Collection[int]) -> bool:
    kind = _kind(value)
    if kind is tuple:
        return all(_may_remember(part, evolved) for part in tuple.__iter__(value))
    if kind is not Tensor:
        return value is None or kind is not None
    if value.layout != torch.strided:  # its memory cannot be compared
        return False
    return value.numel() <= _MOST and not (evolved and value.untyped_storage().data_ptr() in evolved)


def _tensors(value: Any) -> Iterable[Tensor]:
    kind = _kind(value)
    if kind is tuple:
        return [tensor for part in tuple.__iter__(value) for tensor in _tensors(part)]
    return [value] if kind is Tensor else []


def _writes(value: Tensor) -> int:
    """The number of writes to a tensor so far; 0 of one of inference mode, which does not count them."""
    return 0 if value.is_inference() else value._version


def _same(now: Tensor, saved: Tensor) -> bool:
    if now.shape != saved.shape or now.dtype != saved.dtype:
        return False
    try:
        return bool(((now == saved) | ((now != now) & (saved != saved))).all())  # noqa: PLR0124 - NaN is NaN
    except RuntimeError:  # what vmap left there, or a type that cannot be compared: it was written to
        return False
