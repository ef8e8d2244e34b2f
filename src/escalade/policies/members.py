"""Some members of a population of any module, called as one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils import _pytree as pytree

from escalade.errors import InputError
from escalade.perturbation import LowRank, NoiseSource, Population, write_all
from escalade.perturbation.low_rank import member_of, member_pieces
from escalade.policies.interception import Intercept
from escalade.policies.layout import EvolvedParameter, Layout, Vector
from escalade.support.generators import generators_kept

CANNOT_BATCH = (
    "Batching rule not implemented",
    "vmap: It looks like you're ",
    "vmap: inplace",
    "Cannot access data pointer",
    "Batch norm got a batched tensor",
)
"""Parts of what torch says of a module that vmap cannot batch: it says so whatever the numbers are."""

_TOLERANCE = 4096  # roundings of the module's type by which two ways to the same output may differ


class Members:
    """Members of a population as one callable; ``len(members)`` is their number n.

    ``members(inputs)`` calls the module for all of them: every tensor it is given has a leading axis of n,
    and so have those it returns. What has no such axis (numbers, None, strings) is the same for all. With
    noise of low rank, matrices are those of the centre, and every member's own correction is added.
    """

    def __init__(self, caller: ModuleCaller, population: Population, members: Sequence[int]) -> None:
        self._caller = caller
        self._population, self._numbers = population, members

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
        and calls the members: so methods such as ``generate`` of a language model work as they are.
        """
        module, own = self._caller.module, vars(self._caller.module)
        original = {name: own[name] for name in ("forward",) if name in own}  # mostly the class's alone

        def restore() -> None:
            own.pop("forward", None)
            own.update(original)

        def forward(*inputs: Any, **named: Any) -> Any:
            restore()  # for the calls of the members, which are this very module
            try:
                return self._regrouped(inputs, named)
            finally:
                own["forward"] = forward

        own["forward"] = forward
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
        given = [member_of(source, self._population, member) for member in self._numbers]
        own: dict[str, Tensor] = {}
        factors: dict[str, tuple[Tensor, Tensor]] = {}
        for part, stretch in zip(parts, source.parts, strict=True):
            if stretch.rank:
                pairs = zip(*(member.factors(stretch) for member in given), strict=True)
                a, b = (_like(part, _stack(rows)).mT.contiguous() for rows in pairs)
                factors[part.name] = a, b
            else:
                rows = self._caller.room(len(given), stretch.size)
                for row, member in zip(rows, given, strict=True):
                    member.write(stretch, row)
                own[part.name] = _like(part, rows).reshape(len(given), *part.shape)
        return own, factors

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
        return pytree.tree_map(lambda part: part.flatten(0, 1) if isinstance(part, Tensor) else part, outputs)


class ModuleCaller:
    """Calls a module for many members at once; where it cannot be, one after the other.

    Args:
        module: written to and called; of nobody else's.
        layout: which of its parameters evolve.
        source: the members' noise.
    """

    def __init__(self, module: nn.Module, layout: Layout, source: NoiseSource | None) -> None:
        self.module, self.layout = module, layout
        self.source = source if isinstance(source, LowRank) and source.rank else None
        self.room: Callable[..., Any] = source.room if isinstance(source, LowRank) else _room
        self._write = layout.writer(module)
        self._center: Vector | None = None
        self.one_at_a_time: str | None = None
        """The reason why members are called one after the other; None where they are not."""
        self._matrices = dict(module.named_parameters())
        self._probed = False
        self._said: set[str] = set()

    def begin(self, center: Vector) -> None:
        """Have the module hold a generation's centre, shape (dimension,); it is kept, and not written to."""
        self._center = center
        self._write(center)

    def write_member(self, population: Population, member: int) -> None:
        """Write a member's parameters into the module."""
        self._write(member_pieces(population, member))

    def call(self, members: Members, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The module's outputs for all members, whose axis is the first of every tensor."""
        if self.one_at_a_time is None:
            try:
                if not self._probed:
                    self._probe(members, inputs, named)
                if self.one_at_a_time is None:
                    return self._together(members, inputs, named)
            except RuntimeError as problem:
                if not any(words in str(problem) for words in CANNOT_BATCH):
                    raise
                self._give_up(str(problem).partition("\n")[0])
        return _stacked(self._alone(members, range(len(members)), inputs, named))

    def _together(self, members: Members, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        own, factors = members.factors
        written: dict[str, str] = {}

        def one(own: Any, factors: Any, inputs: Any, named: Any) -> Any:
            with Intercept.of(self._matrices, factors) as met:
                outputs = functional_call(self.module, own, inputs, named)
            written.update(met.written)
            return outputs

        axes = pytree.tree_map(lambda part: 0 if isinstance(part, Tensor) else None, (inputs, named))
        outputs = vmap(one, in_dims=(0, 0, *axes), randomness="different")(own, factors, inputs, named)
        for name, function in written.items():
            self._say(
                f"parameter {name!r} is written out for every member, which is slow: {function} takes it"
            )
        return outputs

    def _alone(
        self, members: Members, places: Sequence[int], inputs: tuple[Any, ...], named: dict[str, Any]
    ) -> list[Any]:
        """Outputs of the members at ``places``, each written out; the module then holds the centre again."""
        outputs, before = [], self.layout.to_vector(self.module) if self._center is None else self._center
        try:
            for place in places:
                members.write(place)
                own_inputs, own_named = pytree.tree_map(partial(_one_of, place), (inputs, named))
                found = self.module(*own_inputs, **own_named)
                # A copy: it may be a parameter, which the next member writes over.
                outputs.append(pytree.tree_map_only(Tensor, Tensor.clone, found))
        finally:
            self._write(before)
        return outputs

    def _probe(self, members: Members, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Compare the last member's outputs with those of the module that holds its parameters."""
        self._probed = True
        last = len(members) - 1
        with generators_kept():
            outputs = self._together(members, inputs, named)
            expected, again = self._alone(members, [last, last], inputs, named)
        if not _close(expected, again):
            return  # it draws: no two calls are alike
        if not _close(pytree.tree_map(partial(_one_of, last), outputs), expected):
            self._give_up("its outputs are others than those of the module with the member's parameters")

    def _give_up(self, why: str) -> None:
        self.one_at_a_time = why
        self._say(
            f"members of {type(self.module).__name__} are called one after the other, which is slow: {why}"
        )

    def _say(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            warnings.warn(what, stacklevel=2)


def _room(*shape: int) -> Any:
    return np.empty(shape, np.float32)


def _like(part: EvolvedParameter, values: Any) -> Tensor:
    """An array or tensor as a tensor of the parameter's type, on its device."""
    return torch.as_tensor(values).to(part.device, part.dtype)


def _stack(rows: Sequence[Any]) -> Any:
    return torch.stack([torch.as_tensor(row) for row in rows])


def _one_of(place: int, part: Any) -> Any:
    """A member's own of a tensor with the members' axis first, in memory of its own; all else as it is."""
    return part[place].clone() if isinstance(part, Tensor) else part


def _stacked(outputs: list[Any]) -> Any:
    leaves = zip(*(pytree.tree_leaves(output) for output in outputs), strict=True)
    made = [torch.stack(parts) if isinstance(parts[0], Tensor) else parts[0] for parts in leaves]
    return pytree.tree_unflatten(made, pytree.tree_structure(outputs[0]))


def _close(first: Any, second: Any) -> bool:
    """Tell whether two outputs differ by roundings alone."""
    pairs = zip(pytree.tree_leaves(first), pytree.tree_leaves(second), strict=True)
    for one, other in pairs:
        if not isinstance(one, Tensor) or not one.is_floating_point():
            continue
        if one.shape != other.shape:
            return False
        largest = float(other.detach().abs().nan_to_num().max()) if other.numel() else 0.0
        allowed = min(0.1, _TOLERANCE * torch.finfo(one.dtype).eps) * max(largest, 1e-6)
        if not torch.allclose(one, other, rtol=0.0, atol=allowed, equal_nan=True):
            return False
    return True
