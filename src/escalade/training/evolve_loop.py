"""The generation loop of :func:`escalade.evolve`."""

from __future__ import annotations

import math
import sys
import time
import warnings
from typing import Generic

import numpy as np
from numpy.typing import NDArray
from torch import nn

from escalade.engines import Engine
from escalade.errors import EnvironmentFailure, InputError
from escalade.fitness.work import Job
from escalade.perturbation import Population
from escalade.policies.layout import Layout, M, Vector, copy_module
from escalade.storage.tensors import State, Tensors
from escalade.strategies import Strategy
from escalade.strategies.saving import load_strategy
from escalade.strategies.shaping import usable
from escalade.support.interrupts import Interrupts
from escalade.training.evolve_plan import Plan
from escalade.training.evolve_records import Evolution, Generation, View
from escalade.training.evolve_saving import history_rows, history_table, read_saved, write_saved

_SAVE_SHARE = 50  # saving may take one part in this of the time since the last save


class Loop(Generic[M]):
    """One run: the strategy, and everything that is counted on the way."""

    def __init__(self, module: M, layout: Layout, strategy: Strategy, engine: Engine, plan: Plan) -> None:
        self.module = module
        self.strategy = strategy
        self.engine = engine
        self.plan = plan
        self.layout = layout
        self.interrupts = Interrupts()
        self.sign = 1.0 if strategy.direction == "maximize" else -1.0
        self.history: list[Generation] = []
        self.best: tuple[Vector, float] | None = None
        self.evaluations = 0
        self.goals_met = 0
        self.score = math.nan
        self.seconds_before = 0.0
        self._began = self._saved_at = time.monotonic()
        self._save_seconds = 0.0
        self._warned = False
        self._write = layout.writer(module)
        if plan.resume and plan.save_path is not None and plan.save_path.exists():
            self._load(*read_saved(plan.save_path))

    def run(self) -> Evolution[M]:
        """Evolve until something says stop."""
        try:
            with self.interrupts:
                self._save()  # a path that cannot be written is best known now
                reason = self._loop()
                self._save()  # before the last test, which a resumed run has not
                if reason not in ("goal", "interrupted"):
                    self._test_finally()
        finally:  # whatever happened, what was learnt stays with the caller
            self._write(self.center)
        best, fitness = self.best or (self.center, math.nan)
        return Evolution(
            self.module,
            self.score,
            self.center,
            best,
            fitness,
            tuple(self.history),
            self.strategy.generation,
            reason,
        )

    @property
    def center(self) -> Vector:
        """The unperturbed parameters, shape (dimension,)."""
        return np.asarray(self.strategy.center.detach().numpy().copy())

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self.seconds_before + time.monotonic() - self._began

    def _loop(self) -> str:
        """Ask, evaluate, tell; why it ended."""
        while (reason := self._reason_to_stop()) is None:
            population = self.strategy.sample()
            tested = self.plan.test_every > 0 and self.strategy.generation % self.plan.test_every == 0
            try:
                fitness, score = self._evaluate(population, tested)
            except KeyboardInterrupt:
                return "interrupted"
            self._check_finite(fitness)
            self._remember(population, fitness)
            stop = score is not None and self._test(score)
            solved = self.plan.goal is not None and self.goals_met >= self.plan.goal_patience
            before = self.strategy.sigma, self.strategy.lr
            if not solved:  # a module that met its goal stays as it was tested
                self.strategy.tell(fitness)
            self._record(fitness, score, *before, solved)
            stop = self._call_back() or stop
            self._save_if_due()
            if solved:
                return "goal"
            if stop:
                return "callback"
        return reason

    def _reason_to_stop(self) -> str | None:
        if self.interrupts.requested:
            return "interrupted"
        if self.strategy.generation >= self.plan.generations:
            return "generations"
        if self.plan.seconds is not None and self.seconds >= self.plan.seconds:
            return "seconds"
        return None

    def _evaluate(
        self, population: Population | None, tested: bool
    ) -> tuple[NDArray[np.float64], float | None]:
        """Fitness of every member, shape (population,), and of the centre when it is tested."""
        generation = self.strategy.generation
        center = self.center if tested else None
        job = Job(self.strategy.seed, generation, population, self.plan.batch, center)
        with self.interrupts.allowed():  # nothing is half done meanwhile: this is where Ctrl-C takes hold
            results = self.engine.run(job, job.items)
        fitness = np.array([number for part in results[: job.batches] for number in part], dtype=np.float64)
        self.evaluations += len(fitness) + tested
        return fitness, float(results[-1][0]) if tested else None

    def _test(self, score: float) -> bool:
        """Take in a test of the unperturbed module; whether its callback wants to stop."""
        self.score = score
        self._improve(score, self.center)
        goal = self.plan.goal
        self.goals_met = self.goals_met + 1 if goal is not None and self.sign * (score - goal) >= 0 else 0
        if self.plan.on_test is None:
            return False
        self._write(self.center)
        return bool(self.plan.on_test(self.module, score))

    def _test_finally(self) -> None:
        """Learn what the centre is worth as the run leaves it."""
        try:
            _, score = self._evaluate(None, True)
        except KeyboardInterrupt:
            return  # the score is then that of the last test
        if score is not None:
            self.score = score
            self._improve(score, self.center)

    def _check_finite(self, fitness: NDArray[np.float64]) -> None:
        bad = np.flatnonzero(~usable(fitness))
        generation = self.strategy.generation
        if len(bad) == len(fitness):
            raise EnvironmentFailure(
                f"fitness is NaN or infinite for all {len(fitness)} members of generation {generation} "
                f"({fitness[0]} for member 0): there is nothing to learn from"
            )
        if len(bad) and not self._warned:
            self._warned = True
            warnings.warn(
                f"fitness of member {bad[0]} of generation {generation} is {fitness[bad[0]]}; such members "
                "count as the worst of their generation",
                RuntimeWarning,
                stacklevel=5,
            )

    def _remember(self, population: Population, fitness: NDArray[np.float64]) -> None:
        signed = np.where(usable(fitness), self.sign * fitness, -np.inf)
        member = int(signed.argmax())
        if self.best is None or signed[member] > self.sign * self.best[1]:
            vector = np.empty(population.dimension, dtype=np.float32)
            population.write(member, self.strategy.table.values, vector)
            self.best = vector, float(fitness[member])

    def _improve(self, fitness: float, vector: Vector) -> None:
        if math.isfinite(fitness) and (self.best is None or self.sign * (fitness - self.best[1]) > 0):
            self.best = vector, fitness

    def _record(
        self, fitness: NDArray[np.float64], score: float | None, sigma: float, lr: float, solved: bool
    ) -> None:
        finite = fitness[usable(fitness)]
        best, worst = (finite.max(), finite.min())[:: int(self.sign)]
        row = Generation(
            generation=self.strategy.generation + solved,
            evaluations=self.evaluations,
            seconds=self.seconds,
            best=float(best),
            mean=float(finite.mean()),
            worst=float(worst),
            std=float(finite.std()),
            score=score,
            sigma=sigma,
            lr=lr,
            update_ratio=0.0 if solved else self.strategy.update_ratio,
            nonfinite=len(fitness) - len(finite),
        )
        self.history.append(row)
        if self.plan.verbose and (row.generation % self.plan.verbose == 0 or solved):
            sys.stderr.write(f"{row}\n")

    def _call_back(self) -> bool:
        """Show the generation; whether the caller wants to stop."""
        if self.plan.callback is None:
            return False
        center = self.center
        center.flags.writeable = False
        best = self.best[1] if self.best else math.nan
        return bool(self.plan.callback(View(self.history[-1], center, best, self._copy)))

    def _copy(self) -> nn.Module:
        module = copy_module(self.module)
        self.layout.writer(module)(self.center)
        return module

    def _save_if_due(self) -> None:
        if time.monotonic() - self._saved_at >= _SAVE_SHARE * self._save_seconds:
            self._save()

    def _save(self) -> None:
        if self.plan.save_path is None:
            return
        began = time.monotonic()
        tensors: Tensors = {"center": self.center, "history": history_table(self.history)}
        if self.best is not None:
            tensors["best"] = self.best[0]
        state: State = {
            **self._identity(),
            "best_fitness": self.best[1] if self.best else None,
            "evaluations": self.evaluations,
            "goals_met": self.goals_met,
            "score": self.score if math.isfinite(self.score) else None,
            "seconds": self.seconds,
        }
        write_saved(self.plan.save_path, self.strategy, tensors, state)
        self._saved_at = time.monotonic()
        self._save_seconds = self._saved_at - began

    def _load(self, tensors: Tensors, state: State) -> None:
        """Go on from a saved run.

        Raises:
            InputError: it was of another module, strategy, population, seed or direction.
        """
        for name, here in self._identity().items():
            if state[name] != here:
                raise InputError(
                    f"save_path {self.plan.save_path} is of a run whose {name} is {state[name]}, not {here}: "
                    "resume with the same, or name another file"
                )
        load_strategy(self.strategy, tensors, state["numbers"])
        self.history = history_rows(tensors["history"])
        self.evaluations, self.goals_met = int(state["evaluations"]), int(state["goals_met"])
        if len(self.history) > self.strategy.generation:  # it met its goal there, and is tested there again
            self.evaluations -= self.strategy.population_size + 1
            self.goals_met -= 1
            self.history.pop()
        self.best = (tensors["best"].copy(), float(state["best_fitness"])) if "best" in tensors else None
        self.score = math.nan if state["score"] is None else float(state["score"])
        self.seconds_before = float(state["seconds"])

    def _identity(self) -> State:
        """What must be the same for a run to be the same run."""
        return {
            "strategy": type(self.strategy).__name__,
            "population": self.strategy.population_size,
            "seed": self.strategy.seed,
            "direction": self.strategy.direction,
            "shapes": {name: list(shape) for name, shape in self.layout.shapes.items()},
        }
