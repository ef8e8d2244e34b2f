"""Some members of a population of any module, called as one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils import _pytree as pytree

from escalade.errors import InputError
from escalade.perturbation import CenterPopulation, Population, write_all
from escalade.perturbation.factors import members_of
from escalade.policies.population.buffers import Kept
from escalade.policies.population.held_module import HeldModule
from escalade.policies.population.interception import Intercept
from escalade.policies.population.layout import EvolvedParameter
from escalade.policies.population.torch_network import is_refusal
from escalade.support.arrays import tensor_of
from escalade.support.generators import Generators, generators_kept

_CALLED = ("forward", "_call_impl")
"""Attributes that are called of a module: alone, and with the module's hooks around it."""
_CONSTANTS = (bool, int, float, str, type(None))
_UNUSUAL = 1e4  # larger outputs are masks, such as -1e9 in attention, and no results
_TOLERANCE = 4096  # roundings of the module's type by which two ways to the same output may differ


class Members:
    """Members of a population as one callable; ``len(members)`` is their number n.

    ``members(inputs)`` calls the module for all of them: every tensor it is given has a leading axis of n,
    and so have those it returns. What has no such axis (numbers, None, strings) is the same for all. With
    noise of low rank, matrices are those of the centre, and every member's own correction is added.
    """

    def __init__(self, held: HeldModule, population: Population, members: Sequence[int]) -> None:
        self._held = held
        self._population, self._numbers = population, members
        self._own: dict[int, Kept] = {}
        """Buffers and attributes of members, by place, if calls one after the other have changed them."""
        # The centre is one member: its bits must not hang on what this worker has found of others.
        self._together = not isinstance(population, CenterPopulation)
        """False if the module cannot be called once for these members."""

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
        held, call = self._held, self._call(inputs, named)
        # One that was refused before counts as refused again: bits must not hang on who met it first.
        self._together = self._together and call not in held.refused
        if self._together and held.one_at_a_time is None:
            generators, kept = Generators(), None if held.probed else Kept(held.module)
            try:
                outputs, written = self._at_once(inputs, named)
                if kept is None or self._agree(outputs, kept, inputs, named):
                    held.warn_written(written)
                    return outputs
            except RuntimeError as problem:
                if not is_refusal(problem):
                    raise
                held.refused.add(call)
                self._together = False
                held.warn_apart(str(problem).partition("\n")[0])
            generators.restore()
            if kept is not None:
                kept.restore()
        outputs = self._one_by_one(range(len(self)), inputs, named)
        return pytree.tree_map(lambda *parts: _stacked(parts), *outputs)

    @contextmanager
    def grouped(self) -> Iterator[nn.Module]:
        """The module itself, for batches whose rows are grouped by member: n times as many, member by member.

        Within the block, each of its calls splits every tensor that has as many rows as the first among them,
        and calls the members: so methods such as ``generate`` of a language model work as they are. Of an
        output that is one number a member, such as a loss, the shape is (n,).
        """
        module, own = self._held.module, vars(self._held.module)
        original = {name: own[name] for name in _CALLED if name in own}  # mostly the class's alone

        def restore() -> None:
            for name in _CALLED:
                own.pop(name, None)
            own.update(original)

        def call(*inputs: Any, **named: Any) -> Any:  # past the hooks: each member's call has them
            restore()  # for the calls of the members, which are this very module
            try:
                return self._regrouped(inputs, named)
            finally:
                own.update(dict.fromkeys(_CALLED, call))

        own.update(dict.fromkeys(_CALLED, call))
        try:
            yield module
        finally:
            restore()

    @cached_property
    def parameters(self) -> dict[str, Tensor]:
        """The members' parameters written out: names to tensors (n, *shape), as ``torch.func`` takes them."""
        room = self._held.room(len(self), self._population.dimension)
        return self._held.layout.stack(write_all(self._population, self._numbers, room))

    @cached_property
    def factors(self) -> tuple[dict[str, Tensor], dict[str, tuple[Tensor, Tensor]]]:
        """The parameters that members have for themselves, and the factors of the others, by name."""
        source, parts = self._held.source, self._held.layout.parts
        if source is None:
            return self.parameters, {}
        given = members_of(source, self._population, self._numbers)
        own: dict[str, Tensor] = {}
        factors: dict[str, tuple[Tensor, Tensor]] = {}
        for part, stretch in zip(parts, source.parts, strict=True):
            if stretch.rank:
                a, b = (_like(part, rows).mT.contiguous() for rows in given.factors(stretch))
                factors[part.name] = (b, a) if part.transposed else (a, b)
            else:
                own[part.name] = part.view(_like(part, given.parameters(stretch)))
        return own, factors

    def write(self, place: int) -> None:
        """Write the parameters of the member at ``place`` into the module."""
        self._held.write_member(self._population, self._numbers[place])

    def _call(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Hashable:
        """All that the way of a call through the module follows from, but for the numbers in tensors."""
        leaves, structure = pytree.tree_flatten((inputs, named))
        parts = [
            (part.shape, part.dtype)
            if isinstance(part, Tensor)
            else (type(part), part if type(part) in _CONSTANTS else object())  # like no other
            for part in leaves
        ]
        return len(self), str(structure), tuple(parts), self._held.module.training

    def _at_once(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, str]]:
        """The outputs of all members in one call of vmap, and the parameters that it had written out."""
        held, (own, factors) = self._held, self.factors
        met: list[Intercept] = []
        form: list[Any] = []

        def one(own: Any, factors: Any, inputs: Any, named: Any) -> Any:
            with Intercept(held.matrices, factors) as intercept:
                met.append(intercept)
                leaves, structure = pytree.tree_flatten(functional_call(held.module, own, inputs, named))
            form[:] = structure, [None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves]
            return tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))

        axes = pytree.tree_map(lambda part: 0 if isinstance(part, Tensor) else None, (inputs, named))
        found = iter(vmap(one, in_dims=(0, 0, *axes), randomness="different")(own, factors, inputs, named))
        structure, others = form  # what is no tensor was computed once, and is the same for all
        leaves = [next(found) if other is None else _stacked(other * len(self)) for other in others]
        return pytree.tree_unflatten(leaves, structure), met[0].written

    def _agree(self, outputs: Any, before: Kept, inputs: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Compare the last member's outputs with those of the module that holds its parameters.

        ``before`` is what the module kept before it was called.
        """
        self._held.probed = True
        if before.changed():
            before.restore()
            self._held.give_up("it writes to its buffers or attributes, of which each member needs its own")
            return False
        last = len(self) - 1
        with generators_kept():
            (expected,), (again,) = (self._one_by_one([last], inputs, named) for _ in range(2))
        draws = not _close(expected, again)  # no two calls are alike
        if draws or _close(pytree.tree_map(partial(_one_of, last), outputs), expected):
            return True
        self._held.give_up("its outputs are others than those of the module with the member's parameters")
        return False

    def _one_by_one(self, places: Sequence[int], inputs: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Outputs of the members at ``places``, each written out and with buffers and attributes of its own.

        The module then holds the centre again, and what it had in them.
        """
        module, outputs, center = self._held.module, [], self._held.center
        first = Kept(module)
        try:
            for place in places:
                self.write(place)
                self._own.pop(place, first).restore()
                own_inputs, own_named = pytree.tree_map(partial(_one_of, place), (inputs, named))
                found = module(*own_inputs, **own_named)
                # A copy: it may be a parameter, which the next member writes over.
                outputs.append(pytree.tree_map_only(Tensor, Tensor.clone, found))
                if first.changed():
                    self._own[place] = Kept(module)
        finally:
            first.restore()
            self._held.write(center)
        return outputs

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


def _one_of(place: int, part: Any) -> Any:
    """A member's own of a tensor with the members' axis first, in memory of its own; all else as it is."""
    return part[place].clone() if isinstance(part, Tensor) else part


def _stacked(parts: tuple[Any, ...]) -> Any:
    """Members' outputs as one: tensors and numbers stacked, what is the same for all as it is."""
    if isinstance(parts[0], Tensor):
        return torch.stack(parts)
    if isinstance(parts[0], int | float | np.generic | np.ndarray):
        return torch.from_numpy(np.stack([np.asarray(part) for part in parts]))
    return parts[0]


def _close(first: Any, second: Any) -> bool:
    """Return whether two outputs differ by roundings alone."""
    pairs = [
        (one, other)
        for one, other in zip(pytree.tree_leaves(first), pytree.tree_leaves(second), strict=True)
        if isinstance(one, Tensor) and isinstance(other, Tensor)  # numbers are tensors of one way alone
    ]
    # Whole numbers, such as a choice, may be others by a rounding.
    rounded = [pair for pair in pairs if pair[0].is_floating_point() or pair[0].is_complex()]
    return all(one.shape == other.shape for one, other in pairs) and all(
        _close_numbers(one, other) for one, other in rounded or pairs
    )


def _close_numbers(one: Tensor, other: Tensor) -> bool:
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    # The absolute tolerance follows from the largest result: from a mask it would be far too wide.
    sizes = other.detach().abs()
    usual = float(sizes[sizes < _UNUSUAL].max()) if bool((sizes < _UNUSUAL).any()) else 0.0
    # Members are made in float32, whatever the module's type; and torch.autocast may round one way alone.
    roundings = (torch.finfo(kind).eps for kind in (one.dtype, other.dtype, torch.float32))
    share, common = min(0.1, _TOLERANCE * max(roundings)), torch.promote_types(one.dtype, other.dtype)
    one, other = one.to(common), other.to(common)
    return torch.allclose(one, other, rtol=share, atol=share * max(usual, 1e-6), equal_nan=True)
