"""Evolving a module: a user's function returns the fitness of each member."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.engines import Engine
from escalade.errors import EnvironmentFailure, InputError
from escalade.fitness.work import FitnessJob, FitnessSetup
from escalade.perturbation import Population
from escalade.perturbation.device import device_of
from escalade.perturbation.factors import member_pieces
from escalade.policies.population.layout import Layout, Vector, copy_module
from escalade.rollout.behavior import check_sizes
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Tensors, read, write
from escalade.strategies import Strategy
from escalade.strategies.novelty import Behaviors, Center, Novelty
from escalade.strategies.shaping import usable, usable_number
from escalade.strategies.tensors import held_center
from escalade.support.arrays import tensor_of
from escalade.support.interrupts import Interrupts
from escalade.support.large import filed, shared_copy
from escalade.training.objective import Array, Evaluation, Objective, Outcome
from escalade.training.progress import Counts, Progress

_KIND = "escalade-module-2"
BEST = "best"
"""Name in a checkpoint of the best parameters."""


@dataclass(eq=False)
class FitnessObjective(Objective):
    """Calls a fitness function for members and center, and stores the best parameters of the run."""

    setup: FitnessSetup
    """The evolved module, which is not changed here, and its fitness function."""
    batch: int
    """Number of members per call."""
    facts: State
    """Facts about the run in its checkpoints, which a resumed run must match."""
    direction: float
    novelty: Novelty | None
    """The novelty search, or None to search for fitness only."""
    engine: Engine
    """The engine that calls the fitness function."""
    interrupts: Interrupts
    """Interrupts, which may occur while the engine runs."""
    folder: RunFolder | None
    """Folder for modules, or None to write none."""

    subject = "module"
    unit = "calls of fitness"
    counts_steps = False
    tie_advice = ""

    def __post_init__(self) -> None:
        self.forgives = "catch" if self.setup.catch else None
        self._best: Vector | None = None
        self._room: Tensor | None = None
        self._best_return = math.nan
        self._last_return = math.nan  # of the last evaluation, which may be the final one

    def measure(self, strategy: Strategy, *, evaluate: bool) -> Outcome:
        """Call fitness for every member. With ``evaluate`` or novelty, also call it for the center."""
        with_center = evaluate or self.novelty is not None
        found, behaviors, raised = self._run(strategy, strategy.sample(), with_center)
        fitness, center = (found[:-1], found[-1:]) if with_center else (found, found[:0])
        evaluation = self._evaluation(center, raised[-1]) if evaluate else None
        shaped, seen = None, None
        columns: dict[str, float | None] = {}
        if self.novelty is not None:
            if not usable(fitness).any():
                raise EnvironmentFailure("fitness raised or returned no usable number for every member")
            if behaviors is None:
                raise InputError("novelty needs behaviors; let fitness return (fitness, behavior)")
            seen = Center(self.direction * float(center[0]), behaviors[-1], strategy.generation + 1)
            ranked, columns = self.novelty.shaped(self.direction * fitness, behaviors[:-1], seen)
            shaped = self.direction * ranked
        return Outcome(
            fitness=fitness,
            shaped=shaped,
            returns=fitness,
            scores=fitness,
            evaluation=evaluation,
            behaviors=None if behaviors is None else behaviors[: len(fitness)].copy(),
            raised=raised[: len(fitness)],
            info=tuple(columns.items()),
            further=Counts(eval_episodes=int(with_center and not evaluate)),
            details=seen,
        )

    def evaluate(self, strategy: Strategy) -> Evaluation:
        """Call fitness for the center."""
        center, _, raised = self._run(strategy, None, True)
        return self._evaluation(center, raised[-1])

    def learn(self, outcome: Outcome) -> None:
        """Add the center's behavior to the archive of a novelty search."""
        if self.novelty is not None:
            self.novelty.learn(outcome.details)

    def best_of(self, strategy: Strategy, outcome: Outcome) -> float | None:
        """Return the best fitness of the members and the center."""
        return self._best_in(outcome)[0]

    def keep_best(self, strategy: Strategy, outcome: Outcome) -> None:
        """Store the parameters in memory, for the next checkpoint."""
        worth, member = self._best_in(outcome)
        pieces: Iterable[Any] = (
            [strategy.center.detach()] if member is None else member_pieces(strategy.sample(), member)
        )
        room = self._pinned_room(strategy)
        self._best = _filed(strategy, pieces) if room is None else _written(pieces, room)
        self._best_return = float(worth or 0.0)

    def _pinned_room(self, strategy: Strategy) -> Tensor | None:
        """Return the pinned memory into which a GPU copies the best parameters, or None on the CPU.

        A copy to pinned memory takes a fortieth of the time of a copy to other memory.
        """
        if self._room is None and strategy.center.device.type == "cuda":
            with suppress(RuntimeError):  # memory cannot be pinned, so a file is used
                self._room = torch.empty(
                    strategy.dimension, dtype=torch.float32, device="cpu", pin_memory=True
                )
        return self._room

    def _best_in(self, outcome: Outcome) -> tuple[float | None, int | None]:
        """Return the best usable fitness, or None, and the number of its member, or None for the center."""
        signed = np.where(usable(outcome.fitness), self.direction * outcome.fitness, -np.inf)
        member = int(signed.argmax())
        evaluated = math.nan if outcome.evaluation is None else outcome.evaluation.mean
        if usable_number(evaluated) and self.direction * evaluated > signed[member]:
            return evaluated, None
        return float(outcome.fitness[member]) if np.isfinite(signed[member]) else None, member

    def best(self, strategy: Strategy) -> tuple[Vector, float]:
        """Return the run's best parameters, shape (dimension,), and their return.

        The last evaluation counts too.
        """
        if self._best is None or self._last_is_better():
            return _center(strategy), self._last_return
        return self._best, self._best_return

    def _last_is_better(self) -> bool:
        last = self._last_return
        return self._best is None or (usable_number(last) and self.direction * (last - self._best_return) > 0)

    def describe_member(self, strategy: Strategy, outcome: Outcome, episode: int) -> str:
        """Describe a member."""
        return f"member {episode}"

    def best_seen(self, progress: Progress) -> tuple[float | None, int | None]:
        """Return the run's best return and its generation, including the last evaluation."""
        if self._last_is_better():
            known = usable_number(self._last_return)
            return (self._last_return, progress.generation) if known else (None, None)
        return self._best_return, progress.best_generation

    def module_maker(self, center: Tensor) -> Callable[[], nn.Module]:
        """Return a function that creates modules with these parameters."""
        return partial(_module_of, self.setup.module, self.setup.layout, center)

    def save_module(self, strategy: Strategy) -> None:
        """Write policy.safetensors and best.safetensors, which :func:`escalade.load_evolved` reads."""
        if self.folder is None:
            return
        for path, numbers in (
            (self.folder.policy, _center(strategy)),
            (self.folder.best, self.best(strategy)[0]),
        ):
            parts = self.setup.layout.views(tensor_of(numbers))
            write(path, {name: part.numpy() for name, part in parts.items()}, {"kind": _KIND})

    def state(self) -> tuple[Tensors, State]:
        """Return the best parameters, and the facts that identify the run."""
        tensors = {} if self._best is None else {BEST: self._best}
        facts = {**self.facts, "best_return": self._best_return if tensors else None}
        return tensors | ({} if self.novelty is None else self.novelty.tensors()), facts

    def load_state(self, tensors: Tensors, state: State) -> None:
        """Restore the best parameters."""
        if BEST in tensors:
            self._best, self._best_return = tensors[BEST].copy(), float(state["best_return"])
        if self.novelty is not None:
            self.novelty.load(tensors)

    def _run(
        self, strategy: Strategy, population: Population | None, with_center: bool
    ) -> tuple[Array, Behaviors | None, NDArray[np.object_]]:
        """Call fitness for the members, then for the center if ``with_center``.

        Returns:
            Their fitness; their behaviors, or None if fitness returns none; and the messages of tolerated
            exceptions, None for calls without one.
        """
        center = _center_to_call(strategy, population) if with_center else None
        job = FitnessJob(strategy.seed, strategy.generation, population, self.batch, center)
        with self.interrupts.allowed():  # Ctrl-C may interrupt here, because no state is half changed
            results = self.engine.run(job, job.items)
        parts, messages = results.in_order(), results.raised
        rows = [row for part in parts for row in part]
        raised = np.array([messages.get(item) for item, part in enumerate(parts) for _ in part], np.object_)
        sizes = {len(row) - 1 for row in rows if len(row) > 1 or not math.isnan(row[0])}
        if 0 in sizes and len(sizes) > 1:
            raise InputError("fitness returned behaviors for some members only; return one for each member")
        check_sizes(sizes)
        fitness = np.array([row[0] for row in rows], dtype=np.float64)
        size = max(sizes, default=0)
        if not size:
            return fitness, None, raised
        behaviors = np.full((len(rows), size), np.nan, np.float32)  # of calls that failed
        with np.errstate(over="ignore"):
            for index, row in enumerate(rows):
                behaviors[index, : len(row) - 1] = row[1:]
        return fitness, behaviors, raised

    def _evaluation(self, center: Array, raised: str | None) -> Evaluation:
        """Return the evaluation with the center's fitness, shape (1,), or its exception's message."""
        evaluation = Evaluation(center, raised=raised, failed=int((~usable(center)).sum()))
        self._last_return = evaluation.mean
        return evaluation


def read_parameters(path: Path, layout: Layout) -> Vector:
    """Read the parameters in a file of :meth:`FitnessObjective.save_module`, shape (dimension,).

    Raises:
        InputError: The file does not exist, is damaged, or is not of this module.
    """
    tensors, state = read(path)
    if state.get("kind") != _KIND:
        raise InputError(f"{path} is not a module that evolve saved")
    here, there = layout.shapes, {name: part.shape for name, part in tensors.items()}
    if here != there:
        name = min(name for name in here | there if here.get(name) != there.get(name))
        before, now = (None if name not in shapes else [*shapes[name]] for shapes in (there, here))
        raise InputError(
            f"{path} is of a different module: parameter {name!r} has shape {before} there and {now} here"
        )
    return np.concatenate([tensors[name].reshape(-1) for name in here])


def _center_to_call(strategy: Strategy, population: Population | None) -> Any:
    """Return a copy of the center for a job, or the population's own, which is sent anyway."""
    center = strategy.center.detach()
    held = held_center(population, center)
    if held is not None:
        return held
    return center.clone() if device_of(strategy.perturbation) is not None else shared_copy(center.numpy())


def _module_of(like: nn.Module, layout: Layout, center: Tensor) -> nn.Module:
    module = copy_module(like)
    layout.writer(module)(center)
    return module


def _center(strategy: Strategy) -> Vector:
    """Return a copy of the center, in a memory-mapped file if it is large."""
    return _filed(strategy, [strategy.center.detach()])


def _written(pieces: Iterable[Any], room: Tensor) -> Vector:
    """Write pieces of parameters into ``room``, and return it as an array."""
    low = 0
    for piece in pieces:
        room[low : low + len(piece)] = tensor_of(piece)
        low += len(piece)
    return np.asarray(room.numpy())


def _filed(strategy: Strategy, pieces: Iterable[Any]) -> Vector:
    """Join pieces of parameters of ``strategy`` in one array, in a memory-mapped file if it is large."""
    dtype = np.float64 if strategy.center.dtype == torch.float64 else np.float32
    return filed((tensor_of(piece).cpu().numpy() for piece in pieces), strategy.dimension, dtype)
