"""One run of :func:`escalade.evolve`: from what was asked for to what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray
from torch import nn

from escalade.config.conversion import toml_text
from escalade.engines import Engine
from escalade.errors import InputError
from escalade.fitness.work import FitnessSetup
from escalade.policies.population.layout import Layout, M, copy_module
from escalade.recorders import Goals, History, Recorder, Row, read_rows
from escalade.storage.checkpoints import Loaded
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Stored, record
from escalade.strategies import Strategy
from escalade.strategies.novelty import Novelty, columns, parse
from escalade.support.numbers import plain, workers_in_words
from escalade.support.shown import shown, table
from escalade.training.fitness_objective import FitnessObjective
from escalade.training.limits import Limits
from escalade.training.loop import Loop
from escalade.training.saving import Saver
from escalade.training.session import Checkpoint, SessionFacts, Shared, open_session
from escalade.training.strategy import refuse_ranks
from escalade.training.view import Callback

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


@dataclass(frozen=True)
class Plan:
    """The arguments of :func:`evolve` besides module, fitness and strategy."""

    limits: Limits
    eval_every: int
    engine: str
    workers: int
    batch: int
    folder: RunFolder | None
    resume: bool
    verbose: bool
    catch: bool
    device: str | None
    """The device that the run computes on, in words; None where it was asked for none."""
    novelty: str | None
    recorders: Sequence[str | Recorder]
    callbacks: Sequence[Callback]
    facts: State
    """The options that must be the same when the run is resumed, as plain values."""

    @property
    def target(self) -> State:
        """The arguments that decide whether the run is solved: a solved run goes on when they change."""
        return {"target_return": self.limits.target_return, "target_patience": self.limits.target_patience}


def run_plan(
    module: M, setup: FitnessSetup, strategy: Strategy, start: Callable[[], Engine], plan: Plan
) -> Evolution[M]:
    """Run the loop on the engine that ``start`` gives; whatever ends it, the module keeps what was learnt.

    Raises:
        InputError: the folder's run is another one.
        EnvironmentFailure: fitness raised, or did not return a number.
    """
    if plan.novelty is not None:
        refuse_ranks(strategy)
    history, folder, loaded = _History(), plan.folder, _checkpoint(plan, strategy)
    if folder is not None:
        _prepare(folder, loaded, plan, history)
    kind, name = type(module).__name__, plan.facts["strategy"]
    facts = SessionFacts(
        folder=folder,
        loaded=loaded,
        recorders=[history, *plan.recorders],
        verbose=plan.verbose,
        goals=_goals(module, strategy, plan),
        title=f"{kind}: {name}",
        subject={"module": kind, "strategy": name, "seed": strategy.seed},
        machine={"engine": plan.engine, "workers": plan.workers}
        | ({} if plan.device is None else {"device": plan.device}),
        info=columns(plan.novelty),
        options={name: value for name, value in plan.facts.items() if name not in _UNSEEN},
    )
    engine = start()  # what is refused here leaves the module as it is
    try:
        with open_session(facts, engine) as session:
            objective = FitnessObjective(
                module,
                setup.layout,
                session.engine,
                session.interrupts,
                direction=1.0 if strategy.direction == "maximize" else -1.0,
                batch=plan.batch,
                folder=folder,
                facts={"run": "evolve", "config": plan.facts, "target": plan.target},
                catch=plan.catch,
                novelty=None if plan.novelty is None else Novelty(parse(plan.novelty)),
            )
            loop = Loop(
                objective,
                strategy,
                plan.limits,
                eval_every=plan.eval_every,
                interrupts=session.interrupts,
                recorders=session.recorders,
                callbacks=plan.callbacks,
                saver=Saver(folder),
                warn=not plan.verbose,
            )
            session.begin(loop)
            summary = session.end(loop, loop.run())
    finally:
        setup.layout.writer(module)(strategy.center.detach())
    return _result(module, loop, objective, summary, folder, history)


def _prepare(folder: RunFolder, loaded: Loaded[Checkpoint] | None, plan: Plan, history: _History) -> None:
    """Make the folder that of a new run, or read the rows that a resumed run goes on from."""
    if loaded is None:
        folder.write_config(toml_text({"run": "evolve", **plan.facts}))
    elif folder.progress.exists():
        rows = loaded.checkpoint.progress.rows
        history.rows += [row for row in read_rows(folder.progress) if row.generation <= rows]


def _checkpoint(plan: Plan, strategy: Strategy) -> Loaded[Checkpoint] | None:
    """The checkpoint that the folder's run goes on from; None for a run that begins.

    Raises:
        InputError: the folder's run is another one.
    """
    folder = plan.folder
    if folder is None or not plan.resume or folder.untouched():
        return None
    path = folder.path
    return folder.checkpoints.load_latest(lambda content: _checked(content, plan, strategy, path))


def _checked(content: Stored, plan: Plan, strategy: Strategy, path: Path) -> Checkpoint:
    if "run" not in content.state and "config" in content.state:
        raise InputError(f"run_dir {path} holds a run of escalade.train: resume it with escalade.resume")
    facts = record(_Facts, content.state)
    for name in facts.config | plan.facts:
        here, there = plan.facts.get(name), facts.config.get(name)
        if here != there:
            raise InputError(
                f"run_dir {path} holds a run whose {name} is {there}, not {here}: resume with the "
                f"same (only {_MAY_CHANGE}), or name another folder"
            )
    checkpoint = Checkpoint.of(content)
    if facts.target == plan.target:
        return checkpoint
    return checkpoint.reopened(plan.limits.target_return, 1.0 if strategy.direction == "maximize" else -1.0)


@dataclass(frozen=True)
class _Facts(Shared):
    run: str
    config: dict[str, Any]
    target: dict[str, Any]
    best_return: float | None


def _result(
    module: M,
    loop: Loop,
    objective: FitnessObjective,
    summary: dict[str, Any],
    folder: RunFolder | None,
    history: _History,
) -> Evolution[M]:
    best, best_return = objective.best(loop.strategy)
    evaluated = loop.progress.eval_return_mean
    return Evolution(
        module=module,
        eval_return_mean=math.nan if evaluated is None else evaluated,
        # A strategy of the user's may go on and move it.
        center=loop.center
        if loop.strategy.remake
        else np.asarray(loop.strategy.center.detach().cpu().numpy()),
        best=best,
        best_return=best_return,
        history=History(history.rows),
        generations=loop.progress.rows,
        stop_reason=summary["stop_reason"],
        summary=summary,
        folder=folder,
    )


def _goals(module: nn.Module, strategy: Strategy, plan: Plan) -> Goals:
    title = (
        f"{type(module).__name__}: {plan.facts['strategy']}, population {strategy.population_size}, "
        f"{strategy.dimension:,} parameters, {workers_in_words(plan.workers)}"
    )
    limits = plan.limits
    return Goals(
        title,
        limits.target_return,
        limits.generations,
        seconds=limits.seconds,
        minimize=strategy.direction == "minimize",
        print_evaluations=False,
    )


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
