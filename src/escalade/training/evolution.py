"""One run of :func:`escalade.evolve`: from what was asked for to what it returns."""

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
"""Facts of a run that its pages do not show among the options."""

_MAY_CHANGE = (
    "generations, seconds, target_return, target_patience, eval_every, workers and engine may change"
)


@dataclass(frozen=True)
class Evolution(Generic[M]):
    """The result of :func:`evolve`."""

    module: M
    """The module that was passed in, now with the centre's parameters."""
    eval_return_mean: float
    """Its fitness; after an interruption that of its last evaluation, NaN if there was none."""
    center: NDArray[np.float32]
    """The final centre, shape (dimension,), in the order of ``named_parameters()``."""
    best: NDArray[np.float32]
    """Parameters of the best member, or evaluated centre, of the whole run, shape (dimension,)."""
    best_return: float
    """Its fitness. Where fitness is noisy this is partly luck; ``eval_return_mean`` is fairer."""
    history: History
    """Every generation of the run, those before it was resumed included."""
    generations: int
    """Rows of the history. The last one updates nothing where it met the target."""
    stop_reason: str
    """``solved``, ``generations``, ``seconds``, ``callback``, ``stopped`` or ``interrupted``."""
    summary: dict[str, Any]
    """The contents of summary.json."""
    folder: RunFolder | None
    """The run folder, where one was named."""

    def __fspath__(self) -> str:
        """The folder's path, so that the result can be given wherever a path can."""
        if self.folder is None:
            raise InputError("the run wrote no folder: give evolve a run_dir")
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
        """A new module with the parameters of the best member."""
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
    """The run of a module with a fitness.

    Args:
        setup: the module and its fitness.
        strategy: as it begins.
        facts: the options that must be the same when the run is resumed, as plain values.
        engine: starts the engine that calls the fitness function.
        limits: when the run stops.
        eval_every: generations between evaluations of the centre.
        batch: members that a call is given.
        machine: the machine that it runs on.
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
    """Carry a run of ``module`` out, in ``folder`` from where it is if it may ``resume``.

    Raises:
        InputError: the folder's run is another one.
        EnvironmentFailure: fitness raised, or did not return a number.
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
    """The run, if it may go on from a checkpoint's content.

    Raises:
        InputError: it is of another run.
    """
    saved = content.state["config"]
    for name in saved | facts:
        here, there = facts.get(name), saved.get(name)
        if here != there:
            raise InputError(
                f"run_dir {folder.path} holds a run whose {name} is {there}, not {here}: resume with the "
                f"same (only {_MAY_CHANGE}), or name another folder"
            )
    return spec


@dataclass
class _History:
    """Keeps every row."""

    rows: list[Row] = field(default_factory=list)

    def generation(self, row: Row) -> None:
        self.rows.append(row)

    def note(self, text: str) -> None:
        """Notes are for those who watch."""

    def close(self) -> None:
        """There is nothing to close."""
