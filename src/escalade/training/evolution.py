"""One run of :func:`escalade.evolve`: its specification and its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from escalade.config.conversion import toml_text
from escalade.engines import Engine
from escalade.errors import InputError
from escalade.fitness.work import FitnessSetup
from escalade.policies.population.layout import Layout, M, copy_module
from escalade.recorders import Goals, History, Row
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Stored
from escalade.strategies import Strategy
from escalade.strategies.novelty import Novelty, NoveltyOptions
from escalade.support.numbers import plain, workers_in_words
from escalade.support.output import shown, table
from escalade.training.fitness_objective import FitnessObjective
from escalade.training.limits import Limits
from escalade.training.run import Listeners, RunSpec, carry_out, going_on

_UNSEEN = ("parameters", "order_of_parameters", "types", "frozen_and_buffers", "device")
"""Facts of a run that are not shown among its options."""

_MAY_CHANGE = (
    "generations, seconds, target_return, target_patience, eval_every, workers and engine may change"
)


@dataclass(frozen=True)
class Evolution(Generic[M]):
    """Result of :func:`evolve`."""

    module: M
    """The module that was passed in, now with the center's parameters."""
    eval_return_mean: float
    """Fitness of the module. After an interruption, that of the last evaluation, or NaN without one."""
    center: NDArray[np.float32]
    """The final center, shape (dimension,), in the order of ``named_parameters()``."""
    best: NDArray[np.float32]
    """Parameters of the run's best member or evaluated center, shape (dimension,)."""
    best_return: float
    """Fitness of ``best``. If fitness is noisy, this is partly luck, and ``eval_return_mean`` is fairer."""
    history: History
    """All generations of the run, including those before it was resumed."""
    generations: int
    """Number of rows of the history. If the last generation met the target, it did not update the center."""
    stop_reason: str
    """``solved``, ``generations``, ``seconds``, ``callback``, ``stopped`` or ``interrupted``."""
    summary: dict[str, Any]
    """Contents of summary.json."""
    folder: RunFolder | None
    """The run folder, or None without ``run_dir``."""

    def __fspath__(self) -> str:
        """Return the folder's path, so that the result is accepted in place of a path."""
        if self.folder is None:
            raise InputError("the run has no folder; pass run_dir to evolve")
        return str(self.folder.path)

    def __repr__(self) -> str:
        return (
            f"Evolution(eval_return_mean={plain(self.eval_return_mean)}, "
            f"best_return={plain(self.best_return)}, "
            f"generations={self.generations}, stop_reason={self.stop_reason!r})"
        )

    def _repr_html_(self) -> str:
        facts = ("eval_return_mean", "best_return", "generations", "stop_reason")
        title = f"{type(self.module).__name__} with {len(self.center):,} parameters, evolved"
        return table(title, {name: shown(getattr(self, name)) for name in facts})

    def best_module(self) -> M:
        """Return a new module with the parameters of :attr:`best`."""
        module = copy_module(self.module)
        Layout(module).writer(module)(self.best)
        return module


def module_spec(
    setup: FitnessSetup,
    strategy: Strategy,
    facts: State,
    *,
    engine: Callable[[], Engine],
    limits: Limits,
    eval_every: int,
    batch: int,
    machine: State,
) -> RunSpec:
    """Return the run of a module with a fitness function.

    Args:
        setup: The module and its fitness function.
        strategy: The strategy in its initial state.
        facts: Options that must be equal when the run is resumed, as plain values.
        engine: Starts the engine that calls the fitness function.
        limits: Limits of the run.
        eval_every: Generations between evaluations of the center.
        batch: Number of members per call.
        machine: Facts about the machine.
    """
    novelty: NoveltyOptions | None = facts.get("novelty")
    kind, name = type(setup.module).__name__, facts["strategy"]
    size = f"population {strategy.population_size}, {strategy.dimension:,} parameters"
    return RunSpec(
        strategy=strategy,
        module=setup.module,
        objective=partial(
            FitnessObjective,
            setup,
            batch,
            {"run": "evolve", "config": facts},
            1.0 if strategy.direction == "maximize" else -1.0,
            None if novelty is None else Novelty(novelty),
        ),
        engine=engine,
        limits=limits,
        eval_every=eval_every,
        goals=Goals(
            f"{kind}: {name}, {size}, {workers_in_words(machine['workers'])}",
            limits.target_return,
            limits.generations,
            seconds=limits.seconds,
            minimize=strategy.direction == "minimize",
            print_evaluations=False,
        ),
        title=f"{kind}: {name}",
        subject={"module": kind, "strategy": name, "seed": strategy.seed},
        machine=machine,
        info=() if novelty is None else novelty.columns,
        options={name: value for name, value in facts.items() if name not in _UNSEEN},
        config=toml_text({"run": "evolve", **facts}),
    )


def run_module(
    spec: RunSpec, module: M, facts: State, folder: RunFolder | None, resume: bool, listeners: Listeners
) -> Evolution[M]:
    """Execute a run of ``module`` in ``folder``.

    With ``resume``, continue the run in the folder.

    Raises:
        InputError: The folder holds a different run.
        EnvironmentFailure: Fitness raised, or did not return a number.
    """
    history = _History()
    if folder is not None and resume and not folder.untouched():
        spec = going_on(folder, lambda content: _checked(content, spec, facts, folder))
    elif folder is not None:
        folder.write_config(spec.config)
    ended = carry_out(spec, folder, replace(listeners, recorders=[history, *listeners.recorders]))
    loop, summary = ended.loop, ended.summary
    assert isinstance(loop.objective, FitnessObjective)
    best, best_return = loop.objective.best(loop.strategy)
    evaluated = loop.progress.eval_return_mean
    return Evolution(
        module=module,
        eval_return_mean=math.nan if evaluated is None else evaluated,
        center=np.asarray(loop.strategy.center.detach().cpu().numpy()),
        best=best,
        best_return=best_return,
        history=History([*ended.earlier, *history.rows]),
        generations=loop.progress.rows,
        stop_reason=summary["stop_reason"],
        summary=summary,
        folder=folder,
    )


def _checked(content: Stored, spec: RunSpec, facts: State, folder: RunFolder) -> RunSpec:
    """Return the run if it matches a checkpoint's content.

    Raises:
        InputError: The checkpoint is of a different run.
    """
    saved = content.state["config"]
    for name in saved | facts:
        here, there = facts.get(name), saved.get(name)
        if here != there:
            raise InputError(
                f"run_dir {folder.path} holds a run whose {name} is {there}, not {here}; resume with the "
                f"same value (only {_MAY_CHANGE}), or choose a different folder"
            )
    return spec


@dataclass
class _History:
    """Recorder that collects all rows."""

    rows: list[Row] = field(default_factory=list)

    def generation(self, row: Row) -> None:
        self.rows.append(row)

    def note(self, text: str) -> None:
        """Ignore notes."""

    def close(self) -> None:
        """Do nothing."""
