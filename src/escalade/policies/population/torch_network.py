"""Any nn.Module as a population: one vmapped call of torch.func per step, or one call per member."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import vmap

from escalade.errors import InputError
from escalade.perturbation import CenterPopulation, LowRank, NoiseSource, Population, write_all
from escalade.policies.modules import State, is_stateful, map_state
from escalade.policies.population.layout import Layout, Vector, copy_module
from escalade.policies.population.member_parameters import MemberParameters
from escalade.policies.population.member_state import MemberState, initial_state
from escalade.support.exact import cpu_by_default, one_thread, one_torch_thread

_BLOCK = 32  # members per vmapped call, a fixed number (fewer for large modules)

_NEEDS_STATE = "a module with a state needs a method `initial_state(seed)`"
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
_functorch: Final[Any] = torch._C._functorch

_functorch._set_vmap_fallback_warning_enabled(False)  # a warning would end a run under ``-W error``


@dataclass(frozen=True)
class Batching:
    """Result of trying to batch a module with vmap."""

    refusal: str | None = None
    """Error of vmap, if members must be called one at a time."""
    slow: tuple[str, ...] = ()
    """Operations that vmap runs one member at a time."""


@dataclass(frozen=True)
class TorchNetwork:
    """A module whose flat vector holds its evolved parameters in the order of ``named_parameters()``."""

    module: nn.Module

    @cached_property
    def layout(self) -> Layout:
        """Positions of the parameters in the flat vector."""
        return Layout(self.module)

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return self.layout.dimension

    def forward(self, rows: int, source: NoiseSource | None = None) -> TorchForward:
        """Return a forward pass for up to ``rows`` members with noise from ``source``."""
        return TorchForward(self.module, self.layout, rows, source)

    def check(self, shape: tuple[int, ...], outputs: int) -> Batching:
        """Try three forward passes of one observation of ``shape``; the last repeats the first.

        Raises:
            InputError: the module fails, has the wrong number of outputs or kind of state, or returns
                different outputs when the episode is repeated.
        """
        forward, seen = self.forward(1), np.zeros((1, *shape), dtype=np.float32)
        try:
            with one_thread(), slow_operations() as slow:
                first = self._restarted(forward)(seen)
                forward(seen + 1)
                again = self._restarted(forward)(seen)
        except Exception as problem:
            sizes = " x ".join(map(str, shape))
            hint = (
                f"; {_NEEDS_STATE}" if not is_stateful(self.module) and isinstance(problem, TypeError) else ""
            )
            raise InputError(f"policy fails on a batch of {sizes} numbers: {problem}{hint}") from problem
        if first.shape != (1, outputs):
            shape = first.shape[1:]
            raise InputError(f"policy must return {outputs} numbers per observation, not shape {shape}")
        if not np.array_equal(first, again, equal_nan=True):
            raise InputError(
                "policy returns different outputs for the same input: random numbers, or state inside the "
                "module, would leak between members; return memory as a state (`initial_state`)"
            )
        return Batching(forward.one_at_a_time, tuple(sorted(slow)))

    def _restarted(self, forward: TorchForward) -> TorchForward:
        forward.load(0, CenterPopulation(self.layout.to_vector(self.module)), 0)
        return forward


class TorchForward:
    """Forward pass of up to ``rows`` members, in blocks of a fixed size.

    Kernels may depend on the size of a batch. Every call here has the same size, padded with idle members, so
    that a member's outputs do not depend on the batch.

    Modules that vmap cannot batch are called one member at a time, always from the same memory, because
    kernels may depend on its alignment too.
    """

    def __init__(
        self, module: nn.Module, layout: Layout, rows: int, source: NoiseSource | None = None
    ) -> None:
        # In a product for all members, a row's rounding may depend on its position unless there are 32 rows.
        self._block = block = _BLOCK if isinstance(source, LowRank) else min(_BLOCK, rows)
        self._rows = -(-rows // block) * block
        # A copy on the same device, because moving it to "meta" would untie parameters that two layers share.
        self._skeleton = copy_module(module).eval().requires_grad_(False)
        self._buffers = dict(self._skeleton.named_buffers())
        self._members = MemberParameters(self._skeleton, layout, source, self._rows, block)
        self.one_at_a_time: str | None = None
        """Error of vmap, after it has refused the module."""
        self._layout = layout
        self._stateful = is_stateful(module)
        # A stateful module's state is known at the start of its first episode.
        self._state = None if self._stateful else MemberState((), self._rows)
        buffers_axis = dict.fromkeys(self._buffers, None)
        self._call = vmap(self._one, in_dims=(0, buffers_axis or None, 0, 0))

    def __call__(self, observations: Vector) -> Vector:
        """Return outputs (k, outputs) of the first k members for observations (k, inputs) or (k, C, H, W)."""
        count = len(observations)
        size = self._block
        padded = np.zeros((-(-count // size) * size, *observations.shape[1:]), dtype=np.float32)
        padded[:count] = observations
        blocks = torch.split(torch.from_numpy(padded), size)
        with torch.no_grad(), one_torch_thread(), cpu_by_default():
            outputs = [
                self._outputs(number, block, count - number * size) for number, block in enumerate(blocks)
            ]
            return np.asarray(torch.cat(outputs)[:count].numpy())

    def begin(self, center: Vector | None) -> None:
        """Begin a generation of members around ``center``."""
        self._members.begin(center)

    def load(self, row: int, population: Population, member: int, seed: int = 0) -> None:
        """Begin an episode in ``row``, with the member's parameters and its initial state."""
        self._members.load(row, population, member)
        if self._stateful:
            own = self._layout.views(torch.from_numpy(write_all(population, [member])[0]))
            with torch.no_grad(), one_torch_thread(), cpu_by_default():
                first = initial_state(self._skeleton, own, seed)
                if self._state is None:
                    self._state = MemberState(first, self._rows)
                self._state.put(row, first)

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Move the members in ``rows``, in order, to the front."""
        self._members.keep(rows)
        if self._state is not None:
            self._state.keep(rows)

    def _outputs(self, number: int, observations: Tensor, used: int) -> Tensor:
        """Return the outputs of a block whose first ``used`` members are not idle."""
        if self.one_at_a_time is None:
            try:
                return self._batched(number, observations)
            except RuntimeError as problem:
                if not is_refusal(problem):
                    raise
                self.one_at_a_time = str(problem)
        rows = range(number * self._block, number * self._block + min(used, self._block))
        found = (self._alone(row, observations[row % self._block].clone()) for row in rows)
        # Copies, because an output may be a parameter, which the next member overwrites.
        return torch.stack([output.clone() for output in found])

    def _alone(self, row: int, observation: Tensor) -> Tensor:
        before = self._states.at(row)
        output, after = self._one(self._members.row(row), self._buffers, observation, before)
        self._states.put(row, after)
        return output

    def _batched(self, number: int, observations: Tensor) -> Tensor:
        rows = slice(number * self._block, (number + 1) * self._block)
        members, before = self._members.block(number), self._states.at(rows)
        outputs, after = self._call(members, self._buffers, observations, before)
        self._states.put(rows, after)
        return outputs

    @property
    def _states(self) -> MemberState:
        """The members' states, which exist after the first episode has begun."""
        assert self._state is not None
        return self._state

    def _one(
        self, parameters: Any, buffers: dict[str, Tensor], observation: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Return a member's outputs and its next state, an empty tuple for a stateless module."""
        inputs = (observation[None], map_state(lambda part: part[None], state))
        result = self._members.call(parameters, buffers, inputs if self._stateful else inputs[:1])
        if not self._stateful:
            if not isinstance(result, Tensor):
                raise InputError(f"`forward` returns a {type(result).__name__}, not a tensor; {_NEEDS_STATE}")
            return result[0], ()
        if not isinstance(result, tuple) or len(result) != 2:
            raise InputError("a module with `initial_state` must return a pair of outputs and next state")
        output, after = result
        return output[0], map_state(lambda part: part[0], after)


def is_refusal(problem: RuntimeError) -> bool:
    """Return whether vmap raised ``problem`` because it cannot batch a module."""
    return any(words in str(problem) for words in _REFUSALS)


@contextmanager
def slow_operations() -> Iterator[set[str]]:
    """Collect, until the block ends, the operations for which vmap has no rule."""
    found: set[str] = set()
    _functorch._set_vmap_fallback_warning_enabled(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", message="There is a performance drop")
            yield found
    finally:
        _functorch._set_vmap_fallback_warning_enabled(False)
    for one in caught:
        if slow := _SLOW.match(str(one.message)):
            found.add(slow[1])
        else:
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)
