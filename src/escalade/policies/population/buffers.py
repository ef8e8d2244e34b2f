"""Snapshots of a module's state other than its evolved parameters, which can be restored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import Tensor, nn

_TORCHS: Final = frozenset(vars(nn.Module())) - {"training"}
"""Attributes that every torch module has."""

_PARTS: Final = ("_parameters", "_modules", "_forward_hooks", "_forward_pre_hooks")
_PLAIN: Final = (int, float, bool, str, complex, type(None))
_SMALL: Final = 2**16
"""Largest tensor whose numbers are compared; in larger ones, only writes that torch counts are noticed."""
_MOST: Final = 2**20
"""Largest tensor in an attribute that counts as state; larger ones count as data."""


class Snapshot:
    """Copy of a module's buffers, and of the tensors, numbers and texts in its attributes, also in tuples.

    Some modules store state there. Not included are other objects, the numbers of sparse tensors, attributes
    with more than a million numbers, and tensors that share memory with a parameter.

    Args:
        module: the module.
        whole: True to include the numbers of frozen parameters, and the module's submodules and hooks.
    """

    def __init__(self, module: nn.Module, whole: bool = False) -> None:
        parameters = list(nn.Module.parameters(module))
        memory = {part.untyped_storage().data_ptr() for part in parameters}
        tensors: list[Tensor] = [part for part in parameters if whole and not part.requires_grad]
        self._tables, self._parts = [], []
        for part in nn.Module.modules(module):
            if whole:
                own = [vars(part)[name] for name in _PARTS]
                self._parts += [(table, dict(table)) for table in own]
            for table in (part._buffers, vars(part)):
                known = {name: value for name, value in table.items() if _is_state(name, value)}
                self._tables.append((table, known, frozenset(table)))
                tensors += [
                    value
                    for value in _tensors(tuple(known.values()))
                    if value.layout == torch.strided
                    and (table is part._buffers or value.numel() <= _MOST)
                    and value.untyped_storage().data_ptr() not in memory
                ]
        self._numbers = [_Numbers(value) for value in tensors]

    def restore(self) -> None:
        """Restore everything, and remove what has been added since."""
        for table, parts in self._parts:
            if table or parts:  # most tables are empty
                table.clear()
                table.update(parts)
        for table, known, names in self._tables:
            for name in _added_since(table, names):
                del table[name]
            table.update(known)
        with torch.no_grad():
            for numbers in self._numbers:
                numbers.restore()

    def changed(self) -> bool:
        """Return whether anything has been added, removed or changed."""
        return any(numbers.changed() for numbers in self._numbers) or any(
            _added_since(table, names)
            or not all(name in table and _same(value, table[name]) for name, value in known.items())
            for table, known, names in self._tables
        )


class _Numbers:
    """A tensor, and a copy of its numbers."""

    def __init__(self, value: Tensor) -> None:
        self._value, self._saved = value, value.detach().clone()
        self._counted = value.numel() > _SMALL and not value.is_inference()
        self._writes = value._version if self._counted else 0

    def changed(self) -> bool:
        if self._counted and self._value._version == self._writes:
            return False
        return not torch.equal(self._value, self._saved)

    def restore(self) -> None:
        if self.changed():
            self._value.copy_(self._saved)
        self._writes = self._value._version if self._counted else 0


def _is_state(name: str, value: Any) -> bool:
    if name in _TORCHS:
        return False
    if type(value) is tuple:
        return all(_is_state("", part) for part in value)
    return type(value) in _PLAIN or isinstance(value, Tensor)


def _added_since(table: dict[str, Any], names: frozenset[str]) -> list[str]:
    return [name for name in table.keys() - names if _is_state(name, table[name])]


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif type(value) is tuple:
        for part in value:
            yield from _tensors(part)


def _same(before: Any, now: Any) -> bool:
    """Return whether ``now`` is the same tensor, or an equal number, text or tuple."""
    if type(before) is tuple and type(now) is tuple:
        return len(before) == len(now) and all(map(_same, before, now))
    return before is now or (type(before) in _PLAIN and type(before) is type(now) and before == now)
