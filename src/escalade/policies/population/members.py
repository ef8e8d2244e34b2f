"""Several members of a population of any module, as one callable."""

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
from escalade.policies.population.buffers import Snapshot
from escalade.policies.population.held_module import HeldModule
from escalade.policies.population.interception import Intercept
from escalade.policies.population.layout import EvolvedParameter
from escalade.policies.population.torch_network import is_refusal
from escalade.support.arrays import tensor_of
from escalade.support.generators import Generators, generators_kept

_CALLED = ("forward", "_call_impl")
"""Attributes by which a module is called: without and with its hooks."""
_CONSTANTS = (bool, int, float, str, type(None))
_UNUSUAL = 1e4  # larger outputs count as masks, such as -1e9 in attention, not as results
_TOLERANCE = 4096  # allowed difference of two equivalent computations, in roundings of the module's type


class Members:
    """Members of a population as one callable; ``len(members)`` is their number n.

    ``members(inputs)`` calls the module for all of them: every tensor argument must have a leading axis of n,
    and so do the returned tensors. Other arguments (numbers, None, strings) are the same for all members.
    With low-rank noise the matrices are those of the center, and every member's correction is added.
    """

    def __init__(self, held: HeldModule, population: Population, members: Sequence[int]) -> None:
        self._held = held
        self._population, self._numbers = population, members
        self._own: dict[int, Snapshot] = {}
        """Buffers and attributes of members by index, if calls one at a time have changed them."""
        # The center is a single member: its outputs must not depend on what this worker has found out.
        self._together = not isinstance(population, CenterPopulation)
        """False if the module cannot be called jointly for these members."""

    def __len__(self) -> int:
        return len(self._numbers)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Return the module's outputs, each a tensor of shape (n, ...).

        Raises:
            InputError: a value does not have the members' axis.
        """
        for value in pytree.tree_leaves((inputs, named)):
            if isinstance(value, Tensor) and value.shape[:1] != (len(self),):
                raise InputError(
                    f"members take tensors with a leading axis of {len(self)} members, not of shape "
                    f"{tuple(value.shape)}; use .expand({len(self)}, ...) for a tensor that all members share"
                )
        held, call = self._held, self._call(inputs, named)
        # A call that vmap refused once stays refused, so that outputs do not depend on who called it first.
        self._together = self._together and call not in held.refused
        if self._together and held.one_at_a_time is None:
            generators, before = Generators(), None if held.probed else Snapshot(held.module)
            try:
                outputs, written = self._at_once(inputs, named)
                if before is None or self._agree(outputs, before, inputs, named):
                    held.warn_written_out(written)
                    return outputs
            except RuntimeError as problem:
                if not is_refusal(problem):
                    raise
                held.refused.add(call)
                self._together = False
                held.warn_one_at_a_time(str(problem).partition("\n")[0])
            generators.restore()
            if before is not None:
                before.restore()
        outputs = self._one_by_one(range(len(self)), inputs, named)
        return pytree.tree_map(lambda *parts: _stacked(parts), *outputs)

    @contextmanager
    def grouped(self) -> Iterator[nn.Module]:
        """Yield the module itself, for batches of n times as many rows, grouped by member.

        Within the block, each call of the module splits every tensor that has as many rows as the first
        tensor, and calls the members. Methods such as ``generate`` of a language model therefore work
        unchanged. An output with one number per member, such as a loss, has the shape (n,).
        """
        module, own = self._held.module, vars(self._held.module)
        original = {name: own[name] for name in _CALLED if name in own}  # usually empty

        def restore() -> None:
            for name in _CALLED:
                own.pop(name, None)
            own.update(original)

        def call(*inputs: Any, **named: Any) -> Any:  # bypasses the hooks, which run in each member's call
            restore()  # because the members call this same module
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
        """The members' full parameters for ``torch.func``: names to tensors (n, *shape)."""
        room = self._held.room(len(self), self._population.dimension)
        return self._held.layout.stack(write_all(self._population, self._numbers, room))

    @cached_property
    def factors(self) -> tuple[dict[str, Tensor], dict[str, tuple[Tensor, Tensor]]]:
        """The members' individual parameters, and the factors of all other parameters, by name."""
        source, parts = self._held.source, self._held.layout.parts
        if source is None:
            return self.parameters, {}
        members = members_of(source, self._population, self._numbers)
        own: dict[str, Tensor] = {}
        factors: dict[str, tuple[Tensor, Tensor]] = {}
        for part, stretch in zip(parts, source.parts, strict=True):
            if stretch.rank:
                a, b = (_like(part, rows).mT.contiguous() for rows in members.factors(stretch))
                factors[part.name] = (b, a) if part.transposed else (a, b)
            else:
                own[part.name] = part.view(_like(part, members.parameters(stretch)))
        return own, factors

    def write(self, place: int) -> None:
        """Write the parameters of the member at ``place`` into the module."""
        self._held.write_member(self._population, self._numbers[place])

    def _call(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Hashable:
        """Return a key for a call: all that decides its path through the module, except tensors' numbers."""
        leaves, structure = pytree.tree_flatten((inputs, named))
        parts = [
            (part.shape, part.dtype)
            if isinstance(part, Tensor)
            else (type(part), part if type(part) in _CONSTANTS else object())  # a unique key
            for part in leaves
        ]
        return len(self), str(structure), tuple(parts), self._held.module.training

    def _at_once(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, str]]:
        """Return all members' outputs by one call of vmap, and the parameters that it computed in full."""
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
        structure, others = form  # other values than tensors were computed once, and are the same for all
        leaves = [next(found) if other is None else _stacked(other * len(self)) for other in others]
        return pytree.tree_unflatten(leaves, structure), met[0].written

    def _agree(self, outputs: Any, before: Snapshot, inputs: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Return whether the last member's outputs agree with those of the module with its parameters.

        ``before`` is a snapshot from before the call.
        """
        self._held.probed = True
        if before.changed():
            before.restore()
            self._held.call_one_at_a_time(
                "it writes to its buffers or attributes, and each member needs its own"
            )
            return False
        last = len(self) - 1
        with generators_kept():
            (expected,), (again,) = (self._one_by_one([last], inputs, named) for _ in range(2))
        draws = not _close(expected, again)  # its outputs are random
        if draws or _close(pytree.tree_map(partial(_one_of, last), outputs), expected):
            return True
        self._held.call_one_at_a_time(
            "outputs of a joint call differ from those of the module with a member's parameters"
        )
        return False

    def _one_by_one(self, places: Sequence[int], inputs: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Return the outputs of the members at ``places``, each with its own buffers and attributes.

        Afterwards the module holds the center and its previous buffers and attributes again.
        """
        module, outputs, center = self._held.module, [], self._held.center
        first = Snapshot(module)
        try:
            for place in places:
                self.write(place)
                self._own.pop(place, first).restore()
                own_inputs, own_named = pytree.tree_map(partial(_one_of, place), (inputs, named))
                found = module(*own_inputs, **own_named)
                # A copy, because the output may be a parameter, which the next member overwrites.
                outputs.append(pytree.tree_map_only(Tensor, Tensor.clone, found))
                if first.changed():
                    self._own[place] = Snapshot(module)
        finally:
            first.restore()
            self._held.write(center)
        return outputs

    def _regrouped(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        tensors = [part for part in pytree.tree_leaves((inputs, named)) if isinstance(part, Tensor)]
        rows = tensors[0].shape[0] if tensors and tensors[0].ndim else 0
        if not rows or rows % len(self):
            raise InputError(
                f"grouped members take a multiple of {len(self)} rows, member by member, not {rows}"
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
    """Flatten a tensor (n, rows, ...) to (n * rows, ...); leave one number per member unchanged."""
    return part.flatten(0, 1) if isinstance(part, Tensor) and part.ndim > 1 else part


def _like(part: EvolvedParameter, values: Any) -> Tensor:
    """Convert an array or tensor to a tensor of the parameter's type, on its device."""
    return tensor_of(values).to(part.device, part.dtype)


def _one_of(place: int, part: Any) -> Any:
    """Copy one member's slice of a tensor with the members' axis first; return other values unchanged."""
    return part[place].clone() if isinstance(part, Tensor) else part


def _stacked(parts: tuple[Any, ...]) -> Any:
    """Stack the members' tensors or numbers; return other values, which are the same for all, unchanged."""
    if isinstance(parts[0], Tensor):
        return torch.stack(parts)
    if isinstance(parts[0], int | float | np.generic | np.ndarray):
        return torch.from_numpy(np.stack([np.asarray(part) for part in parts]))
    return parts[0]


def _close(first: Any, second: Any) -> bool:
    """Return whether two outputs differ by rounding only."""
    pairs = [
        (one, other)
        for one, other in zip(pytree.tree_leaves(first), pytree.tree_leaves(second), strict=True)
        if isinstance(one, Tensor) and isinstance(other, Tensor)  # a joint call turns numbers into tensors
    ]
    # Integers, such as a choice, may differ because of a rounding.
    rounded = [pair for pair in pairs if pair[0].is_floating_point() or pair[0].is_complex()]
    return all(one.shape == other.shape for one, other in pairs) and all(
        _close_numbers(one, other) for one, other in rounded or pairs
    )


def _close_numbers(one: Tensor, other: Tensor) -> bool:
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    # The absolute tolerance is relative to the largest result; relative to a mask it would be far too wide.
    sizes = other.detach().abs()
    usual = float(sizes[sizes < _UNUSUAL].max()) if bool((sizes < _UNUSUAL).any()) else 0.0
    # Members are computed in float32, whatever the module's type, and torch.autocast may round only one side.
    roundings = (torch.finfo(kind).eps for kind in (one.dtype, other.dtype, torch.float32))
    share, common = min(0.1, _TOLERANCE * max(roundings)), torch.promote_types(one.dtype, other.dtype)
    one, other = one.to(common), other.to(common)
    return torch.allclose(one, other, rtol=share, atol=share * max(usual, 1e-6), equal_nan=True)
