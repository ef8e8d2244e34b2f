"""Some members of a population of any module, called as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from escalade.errors import InputError
from escalade.perturbation import CenterPopulation, Population, write_all
from escalade.perturbation.factors import members_of
from escalade.policies.population.buffers import Kept
from escalade.policies.population.layout import EvolvedParameter
from escalade.support.arrays import tensor_of

if TYPE_CHECKING:
    from escalade.policies.population.module_caller import ModuleCaller


_CALLED = ("forward", "_call_impl")
"""Attributes that torch calls for a module: alone, and with the module's hooks around it."""


class Members:
    """Members of a population as one callable; ``len(members)`` is their number n.

    ``members(inputs)`` calls the module for all of them: every tensor it is given has a leading axis of n,
    and so have those it returns. What has no such axis (numbers, None, strings) is the same for all. With
    noise of low rank, matrices are those of the centre, and every member's own correction is added.
    """

    def __init__(self, caller: ModuleCaller, population: Population, members: Sequence[int]) -> None:
        self._caller = caller
        self._population, self._numbers = population, members
        self.buffers: dict[int, Kept] = {}
        """Buffers and attributes of members, by place, where calls one after the other have changed them."""
        self.left: Kept | None = None
        """Buffers and attributes that the module was left with after such a call."""

    def __len__(self) -> int:
        return len(self._numbers)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The module's outputs, each tensor of shape (n, ...).

        Raises:
            InputError: a tensor does not have the members' axis.
        """
        for given in pytree.tree_leaves((inputs, named)):
            if isinstance(given, Tensor) and given.shape[:1] != (len(self),):
                raise InputError(
                    f"members take tensors with a leading axis of {len(self)} members, "
                    f"not of shape {tuple(given.shape)}: use .expand({len(self)}, ...) for what all share"
                )
        return self._caller.call(self, inputs, named)

    @contextmanager
    def grouped(self) -> Iterator[nn.Module]:
        """The module itself, for batches whose rows are grouped by member: n times as many, member by member.

        Within the block, each of its calls splits every tensor that has as many rows as the first among them,
        and calls the members: so methods such as ``generate`` of a language model work as they are. Of an
        output that is one number a member, such as a loss, the shape is (n,).
        """
        module, own = self._caller.module, vars(self._caller.module)
        original = {name: own[name] for name in _CALLED if name in own}  # mostly the class's alone

        def replace() -> None:  # past the hooks, which are called once, with what each member is given
            own.update(dict.fromkeys(_CALLED, forward))

        def restore() -> None:
            for name in _CALLED:
                own.pop(name, None)
            own.update(original)

        def forward(*inputs: Any, **named: Any) -> Any:
            restore()  # for the calls of the members, which are this very module
            try:
                return self._regrouped(inputs, named)
            finally:
                replace()

        replace()
        try:
            yield module
        finally:
            restore()

    @cached_property
    def parameters(self) -> dict[str, Tensor]:
        """The members' parameters written out: names to tensors (n, *shape), as ``torch.func`` takes them."""
        return self._caller.layout.stack(self._written())

    @cached_property
    def factors(self) -> tuple[dict[str, Tensor], dict[str, tuple[Tensor, Tensor]]]:
        """The parameters that members have for themselves, and the factors of the others, by name."""
        source, parts = self._caller.source, self._caller.layout.parts
        if source is None:
            return self.parameters, {}
        given = members_of(source, self._population, self._numbers)
        own: dict[str, Tensor] = {}
        factors: dict[str, tuple[Tensor, Tensor]] = {}
        for part, stretch in zip(parts, source.parts, strict=True):
            if stretch.rank:
                a, b = (_like(part, rows).mT.contiguous() for rows in given.factors(stretch))
                factors[part.name] = a, b
            else:
                own[part.name] = _like(part, given.parameters(stretch)).reshape(len(self), *part.shape)
        return own, factors

    @property
    def perturbed(self) -> bool:
        """False of the centre alone."""
        return not isinstance(self._population, CenterPopulation)

    def write(self, place: int) -> None:
        """Write the parameters of the member at ``place`` into the module."""
        self._caller.write_member(self._population, self._numbers[place])

    def _written(self) -> Any:
        """The members' parameters, shape (n, dimension): an array, or a tensor on a device."""
        room = self._caller.room(len(self._numbers), self._population.dimension)
        return write_all(self._population, self._numbers, room)

    def _regrouped(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        tensors = [part for part in pytree.tree_leaves((inputs, named)) if isinstance(part, Tensor)]
        rows = tensors[0].shape[0] if tensors and tensors[0].ndim else 0
        if not rows or rows % len(self):
            raise InputError(
                f"grouped members take a multiple of {len(self)} rows, member by member, and not {rows}"
            )

        def split(part: Any) -> Any:
            if not isinstance(part, Tensor):
                return part
            if part.shape[:1] == (rows,):
                return part.reshape(len(self), -1, *part.shape[1:])
            return part.expand(len(self), *part.shape)

        outputs = self(*pytree.tree_map(split, inputs), **pytree.tree_map(split, named))
        return pytree.tree_map(_joined, outputs)


def _joined(part: Any) -> Any:
    """A tensor (n, rows, ...) as (n * rows, ...); one number a member stays as it is."""
    return part.flatten(0, 1) if isinstance(part, Tensor) and part.ndim > 1 else part


def _like(part: EvolvedParameter, values: Any) -> Tensor:
    """An array or tensor as a tensor of the parameter's type, on its device."""
    return tensor_of(values).to(part.device, part.dtype)
