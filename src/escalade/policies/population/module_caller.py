"""Calls of a module for many members at once, by vmap, or one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils import _pytree as pytree

from escalade.errors import InputError
from escalade.perturbation import LowRank, NoiseSource, Population
from escalade.perturbation.device import DeviceNoise
from escalade.perturbation.factors import member_pieces
from escalade.policies.population.buffers import Attributes, Kept
from escalade.policies.population.interception import Intercept
from escalade.policies.population.layout import Layout, Vector
from escalade.policies.population.members import Members
from escalade.policies.vmapping import is_refusal, slow_operations, unwarned
from escalade.support.generators import Generators, generators_kept

_WRITES = "it writes to its buffers or attributes, of which each member needs its own"
_CONSTANTS = (bool, int, float, str, type(None))
"""Types of arguments that a call's way through a module may follow from."""
_UNUSUAL = 1e4  # larger outputs are masks, such as -1e9 in attention, and no results
_TOLERANCE = 4096  # roundings of the module's type by which two ways to the same output may differ


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
        self.room: Callable[..., Any] = source.room if isinstance(source, DeviceNoise) else _room
        self._write = layout.writer(module)
        _lay_out_once(module)
        self._center: Vector | None = None
        self.one_at_a_time: str | None = None
        """The reason why members are called one after the other; None where they are not."""
        self._matrices = dict(module.named_parameters())
        self._probed = self._refused = False
        self._cleared: Attributes | None = None
        """Attributes that calls write to and never read, as they were; None where there are none."""
        self._refusals: set[Hashable] = set()
        """Signatures of calls that vmap refuses, whatever the members' numbers."""
        self._said: set[str] = set()

    def begin(self, center: Vector) -> None:
        """Have the module hold a generation's centre, shape (dimension,); it is kept, and not written to."""
        self._center = center
        self._write(center)

    def begin_again(self) -> None:
        """Have the module hold that centre once more, after somebody else wrote to it."""
        if self._center is not None:
            self._write(self._center)

    def write_member(self, population: Population, member: int) -> None:
        """Write a member's parameters into the module."""
        self._write(member_pieces(population, member))

    def call(self, members: Members, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The module's outputs for all members, whose axis is the first of every tensor."""
        # The centre is one member: its bits must not hang on what this worker has found of others.
        signature = self._signature(members, inputs, named) if self._refused else None
        if self.one_at_a_time is None and members.perturbed and signature not in self._refusals:
            watched = not self._probed or self._refused
            generators, kept = Generators(), Kept(self.module) if watched else None
            try:
                if kept is not None and not self._probed:
                    self._probe(members, inputs, named, kept, generators)
                if self.one_at_a_time is None:
                    outputs, written = self._together(members, inputs, named, generators)
                    if kept is None or not kept.buffers.changed():
                        self._say_written(written)
                        return outputs
                    self._give_up(_WRITES)
            except RuntimeError as problem:
                if not is_refusal(problem):
                    raise
                self._refused = True
                self._say_apart(str(problem).partition("\n")[0])
            finally:
                if self._cleared is not None:
                    self._cleared.restore()
            generators.restore()
            if kept is not None:
                kept.restore()
        return self._stacked(self._alone(members, range(len(members)), inputs, named))

    def _together(
        self, members: Members, inputs: tuple[Any, ...], named: dict[str, Any], before: Generators
    ) -> tuple[Any, dict[str, str]]:
        """The outputs of all members in one call, and the parameters that were written out for it.

        A refusal is remembered, unless it may follow from the members' numbers, or from what was drawn since
        ``before``: other members may then be batched, in whatever process they are.
        """
        own, factors = members.factors
        form: list[Any] = []
        met: list[Intercept] = []

        def one(own: Any, factors: Any, inputs: Any, named: Any) -> Any:
            with Intercept(self._matrices, factors) as intercept:
                met.append(intercept)
                leaves, structure = pytree.tree_flatten(functional_call(self.module, own, inputs, named))
            form[:] = structure, [None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves]
            return tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))

        axes = pytree.tree_map(lambda part: 0 if isinstance(part, Tensor) else None, (inputs, named))
        try:
            with unwarned:
                called = vmap(one, in_dims=(0, 0, *axes), randomness="different")(own, factors, inputs, named)
        except RuntimeError as problem:
            if is_refusal(problem) and met and not met[0].branched and not before.moved():
                self._refusals.add(self._signature(members, inputs, named))
            raise
        found = iter(called)
        structure, others = form  # what is no tensor was computed once, and is the same for all
        leaves = [next(found) if other is None else self._stack_of(other * len(members)) for other in others]
        return pytree.tree_unflatten(leaves, structure), met[0].written

    def _signature(self, members: Members, inputs: tuple[Any, ...], named: dict[str, Any]) -> Hashable:
        """Return all that a call's way through the module follows from, but for the numbers in tensors."""
        leaves, structure = pytree.tree_flatten((inputs, named))
        parts = [
            (leaf.shape, leaf.dtype, leaf.device) if isinstance(leaf, Tensor) else (type(leaf), leaf)
            for leaf in leaves
        ]
        if any(part[0] not in _CONSTANTS for part in parts if len(part) == 2):
            return object()  # like no other: it follows from the argument, too
        kinds = sorted({"cpu", *(part.device.type for part in self.layout.parts)})
        casts = [(torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds]
        return len(members), str(structure), tuple(parts), tuple(casts), self.module.training

    def _alone(
        self, members: Members, places: Sequence[int], inputs: tuple[Any, ...], named: dict[str, Any]
    ) -> list[Any]:
        """Outputs of the members at ``places``, each written out and with buffers and attributes of its own.

        The module then holds the centre again, and what it had in them.
        """
        outputs, before = [], self._held()
        first = Kept(self.module)
        if members.left is not None and members.left.changed():  # by fitness, between two calls
            members.buffers.clear()
        try:
            for place in places:
                members.write(place)
                members.buffers.pop(place, first).restore()
                own_inputs, own_named = pytree.tree_map(partial(_one_of, place), (inputs, named))
                found = self.module(*own_inputs, **own_named)
                # A copy: it may be a parameter, which the next member writes over.
                outputs.append(pytree.tree_map_only(Tensor, Tensor.clone, found))
                if first.changed():
                    members.buffers[place] = Kept(self.module)
        finally:
            first.restore()
            self._write(before)
        members.left = first
        return outputs

    def _probe(
        self,
        members: Members,
        inputs: tuple[Any, ...],
        named: dict[str, Any],
        first: Kept,
        generators: Generators,
    ) -> None:
        """Compare the last member's outputs with those of the module that holds its parameters.

        ``first`` is what the module keeps before it is called, and ``generators`` the states of those.
        """
        last = len(members) - 1
        with generators_kept():
            try:
                with slow_operations() as slow:
                    outputs, _ = self._together(members, inputs, named, generators)
                writes, leaves = first.buffers.changed(), first.attributes.changed()
            finally:
                first.restore()
            self._probed = True
            if writes or (leaves and self._remembers(members, last, inputs, named)):
                self._give_up(_WRITES)
                return
            if leaves:  # what vmap leaves there is of no use outside of it
                self._cleared = first.attributes
            expected, again = (self._once(members, last, inputs, named) for _ in range(2))
        draws = not _close(expected, again)  # no two calls are alike
        if not draws and not _close(pytree.tree_map(partial(_one_of, last), outputs), expected):
            self._give_up("its outputs are others than those of the module with the member's parameters")
            return
        for operation in sorted(slow):
            self._say(
                f"{operation} of {type(self.module).__name__} runs for one member after the other, which is "
                "slow: torch.func.vmap cannot batch it"
            )

    def _once(self, members: Members, place: int, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The outputs of one member's call that leaves no trace."""
        (found,) = self._alone(members, [place], inputs, named)
        members.buffers.clear()
        members.left = None
        return found

    def _remembers(
        self, members: Members, place: int, inputs: tuple[Any, ...], named: dict[str, Any]
    ) -> bool:
        """Tell whether a call may read what the one before left in the module's attributes.

        So it may where two equal calls differ in a bit, in what they give or in what they leave. A memory
        that stays empty at these inputs is not found.
        """
        before, first = self._held(), Kept(self.module)
        try:
            members.write(place)
            own, own_named = pytree.tree_map(partial(_one_of, place), (inputs, named))
            generators, outputs = Generators(), []
            for _ in range(2):
                left = Attributes(self.module)
                generators.restore()
                outputs.append(pytree.tree_map_only(Tensor, Tensor.clone, self.module(*own, **own_named)))
            return left.changed() or not all(map(_equal, *map(pytree.tree_leaves, outputs)))
        finally:
            first.restore()
            self._write(before)

    def _held(self) -> Vector:
        """The parameters that the module holds between calls."""
        return self.layout.to_vector(self.module) if self._center is None else self._center

    def _stacked(self, outputs: list[Any]) -> Any:
        """The members' outputs as one: tensors and numbers stacked, what is the same for all as it is."""
        leaves = zip(*(pytree.tree_leaves(output) for output in outputs), strict=True)
        made = [self._stack_of(parts) for parts in leaves]
        return pytree.tree_unflatten(made, pytree.tree_structure(outputs[0]))

    def _stack_of(self, parts: tuple[Any, ...]) -> Any:
        if isinstance(parts[0], Tensor):
            return torch.stack(parts)
        if isinstance(parts[0], int | float | np.generic | np.ndarray):
            return torch.from_numpy(np.stack([np.asarray(part) for part in parts]))
        if all(isinstance(part, str | None) and part == parts[0] for part in parts):
            return parts[0]
        raise InputError(
            f"{type(self.module).__name__} gives each member a {type(parts[0]).__name__}: "
            "with `batched`, let it return tensors and numbers"
        )

    def _give_up(self, why: str) -> None:
        self.one_at_a_time = why
        self._say_apart(why)

    def _say_apart(self, why: str) -> None:
        self._say(
            f"members of {type(self.module).__name__} are called one after the other, which is slow: {why}"
        )

    def _say_written(self, written: dict[str, str]) -> None:
        for name, function in written.items():
            self._say(
                f"parameter {name!r} is written out for every member, which is slow: {function} takes it"
            )

    def _say(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            warnings.warn(what, stacklevel=2)


def _lay_out_once(module: nn.Module) -> None:
    """Lay the weights of recurrent layers side by side, as a GPU wants them, now and never again.

    Members are written into them in place, so that they stay so. The weights of a batch of members have no
    memory to lay out, and torch still holds them when the next member is called alone.
    """
    for part in nn.Module.modules(module):
        if isinstance(part, nn.RNNBase) and "flatten_parameters" not in vars(part):
            part.flatten_parameters()
            part.flatten_parameters = _nothing  # type: ignore[method-assign]


def _nothing() -> None:
    """Leave the weights where they are."""


def _room(*shape: int) -> Any:
    """An array that lies as torch's tensors do: kernels may choose their way by that."""
    return torch.empty(shape, dtype=torch.float32, device="cpu").numpy()


def _one_of(place: int, part: Any) -> Any:
    """A member's own of a tensor with the members' axis first, in memory of its own; all else as it is."""
    return part[place].clone() if isinstance(part, Tensor) else part


def _equal(one: Any, other: Any) -> bool:
    return not isinstance(one, Tensor) or torch.equal(one, other)


def _close(first: Any, second: Any) -> bool:
    """Tell whether two outputs differ by roundings alone."""
    pairs = [
        (one, other)
        for one, other in zip(pytree.tree_leaves(first), pytree.tree_leaves(second), strict=True)
        if isinstance(one, Tensor) and isinstance(other, Tensor)  # numbers are tensors of one way alone
    ]
    if any(one.shape != other.shape for one, other in pairs):
        return False
    rounded = [pair for pair in pairs if pair[0].is_floating_point() or pair[0].is_complex()]
    if not rounded:
        return all(torch.equal(one, other) for one, other in pairs)
    return all(_close_numbers(one, other) for one, other in rounded)


def _close_numbers(one: Tensor, other: Tensor) -> bool:
    # The absolute tolerance follows from the largest result: from a mask it would be far too wide.
    sizes = other.detach().abs()
    usual = float(sizes[sizes < _UNUSUAL].max()) if bool((sizes < _UNUSUAL).any()) else 0.0
    # Members are made in float32, whatever the module's type; and torch.autocast may round one way alone.
    roundings = (torch.finfo(kind).eps for kind in (one.dtype, other.dtype, torch.float32))
    share, common = min(0.1, _TOLERANCE * max(roundings)), torch.promote_types(one.dtype, other.dtype)
    one, other = one.to(common), other.to(common)
    return torch.allclose(one, other, rtol=share, atol=share * max(usual, 1e-6), equal_nan=True)
