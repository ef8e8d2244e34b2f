"""A run in its folder: where it begins, goes on from, and what it leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from escalade.engines import Engine
from escalade.engines.report import Reporting
from escalade.errors import InputError
from escalade.media.curves import plot_run
from escalade.media.figure import plotting_available
from escalade.recorders import (
    ClusterFile,
    Goals,
    Recorded,
    Recorder,
    WorkersFile,
    check_recorders,
    population,
    rewind,
    rewind_notes,
    rewind_table,
    start_recorders,
)
from escalade.storage.checkpoints import Loaded
from escalade.storage.files import storage
from escalade.storage.records import record
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import Damaged, Stored
from escalade.strategies import Strategy
from escalade.strategies.saving import load_strategy
from escalade.support.installing import install
from escalade.support.interrupts import Interrupts
from escalade.training.card import write_card
from escalade.training.loop import Callback, Loop
from escalade.training.progress import Progress
from escalade.training.results import summarize
from escalade.training.versions import versions


@dataclass(frozen=True)
class Checkpoint:
    """What a resumed run goes on from: a file's content, of which the part that all runs share is checked."""

    content: Stored
    progress: Progress
    """How far the run had come."""
    versions: dict[str, str]
    """What it ran with."""
    on_disk: bool = True
    """Whether the content is what a file holds."""

    @classmethod
    def of(cls, content: Stored) -> Checkpoint:
        """Check a file's content.

        Raises:
            Damaged: it is no run's state, or the state of another version's run.
        """
        shared = {name: content.state.get(name) for name in ("progress", "versions", "strategy")}
        facts = record(_Shared, shared, "its state")
        return cls(content, Progress.from_dict(facts.progress), facts.versions)

    def reopened(self) -> Checkpoint:
        """The same, for another target: a solved run goes on."""
        progress = copy.deepcopy(self.progress)
        progress.reopen()
        state = {**self.content.state, "progress": progress.to_dict()}
        return replace(self, content=Stored(self.content.tensors, state), progress=progress, on_disk=False)

    def check_strategy(self, strategy: Strategy) -> None:
        """Load the strategy's state into ``strategy``, to see that it can be.

        Raises:
            Damaged: it is another strategy's, or of another size.
        """
        try:
            load_strategy(strategy, self.content.tensors, self.content.state["strategy"])
        except InputError as problem:
            raise Damaged(str(problem)) from None
        if strategy.generation != self.progress.generation:
            raise Damaged("its strategy is at another generation than its progress")


@dataclass(frozen=True)
class _Shared:
    progress: dict[str, Any]
    versions: dict[str, str]
    strategy: dict[str, Any]


def rewind_folder(folder: RunFolder, checkpoint: Checkpoint, info: Sequence[str]) -> int:
    """Drop what is later than the checkpoint; how many recorded generations that were."""
    folder.forget_after(checkpoint.progress.generation)
    if checkpoint.progress.best_return is None:
        with storage(folder.best):
            folder.best.unlink(missing_ok=True)
    rewind_notes(folder.notes, checkpoint.progress.said)
    rewind_table(folder.population, population.COLUMNS, checkpoint.progress.rows)
    return rewind(folder.progress, checkpoint.progress.rows, info)


def go_on(loop: Loop, folder: RunFolder, loaded: Loaded[Checkpoint], lost: int) -> None:
    """Take over the checkpoint, and say from where the run goes on; ``lost`` generations run again."""
    checkpoint = loaded.checkpoint
    loop.load_state(*checkpoint.content)
    for problem in loaded.problems:
        loop.notes.say(f"{problem}: going on from the checkpoint before it")
    if checkpoint.on_disk:
        loop.saver.saved(loop.progress)
    if checkpoint.versions != versions():
        loop.notes.say(
            f"the run was saved with {checkpoint.versions}, this is {versions()}: last bits may differ"
        )
    again = f": {lost} later ones have no checkpoint and are run again" if lost else ""
    loop.notes.say(f"resuming {folder.path} after generation {loop.progress.generation}{again}")


@dataclass(frozen=True)
class Surroundings:
    """What a loop runs in: its folder, those who watch it, and what its summary says of it."""

    folder: RunFolder | None
    """None writes nothing."""
    loaded: Loaded[Checkpoint] | None
    """What a resumed run goes on from."""
    recorders: Sequence[str | Recorder]
    verbose: bool
    goals: Goals
    title: str
    """Of the learning curve."""
    subject: Mapping[str, Any]
    """What is trained, for the summary."""
    machine: Mapping[str, Any]
    """What it runs on, for the summary."""
    info: tuple[str, ...] = ()
    """The columns of its rows' :attr:`escalade.recorders.Row.info`."""
    trackers: Sequence[str] = ()
    """Names of recorders that come after the console, which shows what they say."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What was asked for, for recorders and the curve."""

    @property
    def wanted(self) -> list[str | Recorder]:
        """All recorders: the file, the caller's own, the console."""
        files = [] if self.folder is None else ["csv", "population"]
        return [*files, *self.recorders, *(["console"] if self.verbose else []), *self.trackers]

    def recorded(self, lost: int) -> Recorded:
        """What recorders may know; ``lost`` generations were recorded before, and run again."""
        rows = 0 if self.loaded is None else self.loaded.checkpoint.progress.rows
        facts = {**self.subject, **self.machine, **self.options}
        return Recorded(self.folder, self.goals, self.info, facts, rows + 1, lost)


def run_loop(
    around: Surroundings, engine: Engine, make_loop: Callable[[Sequence[Recorder], Interrupts], Loop]
) -> tuple[Loop, dict[str, Any]]:
    """Run a loop from where its folder stands, and leave in the folder what a run leaves.

    From the first generation until all files are written, the first interrupt only asks for an end.

    Args:
        around: the folder, recorders and facts.
        engine: what the loop's objective runs on; the caller closes it.
        make_loop: makes the loop, given its recorders and its interrupts.

    Returns:
        The loop and the summary.
    """
    folder, loaded, interrupts = around.folder, around.loaded, Interrupts()
    with interrupts:
        with ExitStack() as closing:
            lost = 0
            if folder is not None and loaded is not None:
                lost = rewind_folder(folder, loaded.checkpoint, around.info)
            recorders = start_recorders(around.wanted, around.recorded(lost), closing)
            if folder is not None and isinstance(engine, Reporting):
                recorders.append(_report_file(folder, engine, recorders))
                closing.callback(recorders[-1].close)
            loop = make_loop(recorders, interrupts)
            engine.on_note, engine.on_wait = loop.notes.say, loop.deadline
            if folder is not None and loaded is not None:
                go_on(loop, folder, loaded, lost)
            reason = loop.run()
            loop.objective.save_module(loop.strategy)
            summary = summarize(loop, reason, around.subject, around.machine)
            if folder is not None:
                folder.write_summary(summary)
                write_card(folder, around.title, summary)
                if not plotting_available():
                    loop.notes.say(f"no {folder.curve.name}: plots need matplotlib: {install('plot')}")
        if folder is not None and loop.progress.rows and plotting_available():
            cut = around.options.get("cutoff") is not None
            plot_run(folder.path, folder.curve, summary["target_return"], around.title, cut=cut)
    return loop, summary


def _report_file(folder: RunFolder, engine: Reporting, others: Sequence[Recorder]) -> Recorder:
    """What records who did what."""
    if engine.reports == "nodes":
        return ClusterFile(folder.cluster, engine.take_report, others)
    return WorkersFile(folder.workers, engine.take_report)


def check_listeners(recorders: Sequence[str | Recorder], callbacks: Sequence[Callback]) -> None:
    """Refuse recorders and callbacks that are none, before anything is started.

    Raises:
        InputError: names the argument.
    """
    check_recorders(recorders)
    if not isinstance(callbacks, Sequence) or not all(callable(callback) for callback in callbacks):
        raise InputError(f"`callbacks` must be a list of functions of a view, not {callbacks!r}")
