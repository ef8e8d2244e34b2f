"""One run: its specification, and its execution from the first generation to the last file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from torch import nn

from escalade.engines import Engine
from escalade.engines.base import ignore_note, keep_waiting
from escalade.engines.dispatch import Dispatcher
from escalade.errors import InputError
from escalade.media.curves import plot_run
from escalade.media.figure import plotting_available
from escalade.recorders import (
    Announcer,
    Goals,
    PopulationFile,
    Recorder,
    Row,
    RunInfo,
    WorkersFile,
    check_recorders,
    read_rows,
    rewind,
    rewind_notes,
    rewind_table,
    start_recorders,
)
from escalade.storage.files import storage
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import Stored, record
from escalade.strategies import Strategy
from escalade.support.imports import install
from escalade.support.interrupts import Interrupts
from escalade.support.machine import versions
from escalade.support.numbers import counted
from escalade.support.output import ReaderGone, print_line, wording
from escalade.support.registry import check_named
from escalade.training.closing import closing_lines
from escalade.training.limits import Limits
from escalade.training.loop import Loop
from escalade.training.objective import Objective
from escalade.training.progress import Progress
from escalade.training.results import summarize, updates_of
from escalade.training.rows import Callback
from escalade.training.saving import Saver, reopened

OnInterrupt = Literal["raise", "return"]
MakeObjective = Callable[[Engine, Interrupts, RunFolder | None], Objective]


@dataclass(frozen=True)
class Listeners:
    """Recorders and callbacks of a run, and the effect of an interrupt; see :func:`escalade.train`."""

    verbose: bool = True
    recorders: Sequence[Recorder | str] = ()
    callbacks: Sequence[Callback] = ()
    on_interrupt: OnInterrupt = "return"

    def __post_init__(self) -> None:
        check_recorders(self.recorders)
        if not isinstance(self.callbacks, Sequence) or not all(map(callable, self.callbacks)):
            raise InputError(f"`callbacks` must be a list of functions of a view, not {self.callbacks!r}")
        check_named("on_interrupt", self.on_interrupt, get_args(OnInterrupt))


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run, of a policy or of a module with a fitness function, before it starts."""

    strategy: Strategy
    module: nn.Module
    """The trained network or module."""
    objective: MakeObjective
    engine: Callable[[], Engine]
    limits: Limits
    eval_every: int
    goals: Goals
    title: str
    """Title of the learning curve."""
    subject: Mapping[str, Any]
    """Facts about the trained policy or module, for the summary."""
    machine: Mapping[str, Any]
    """Facts about the machine, for the summary."""
    options: Mapping[str, Any]
    """Options as plain values, for recorders and the curve."""
    config: str
    """The text of config.toml."""
    snapshot_every: int = 0
    info: tuple[str, ...] = ()
    """Columns of the rows' :attr:`escalade.recorders.Row.info`."""
    trackers: Sequence[str] = ()
    """Names of recorders that start after the console, which prints their notes."""
    first_notes: Sequence[str] = ()
    """Notes before the first generation."""
    checkpoint: Stored | None = None
    """Content of the checkpoint to resume from, or None for a new run."""

    @property
    def progress(self) -> Progress:
        """Progress of the run so far."""
        return Progress() if self.checkpoint is None else record(Progress, self.checkpoint.state["progress"])


def going_on(folder: RunFolder, resumed: Callable[[Stored], RunSpec]) -> RunSpec:
    """Return the run that continues from the newest usable checkpoint in ``folder``.

    Args:
        folder: Folder of the run.
        resumed: Returns the run of a checkpoint's content, or raises
            :class:`escalade.storage.tensors.Damaged`.

    Raises:
        InputError: No checkpoint is usable.
    """
    found = folder.checkpoints.load_latest(lambda content: (content, resumed(content)))
    content, spec = found.checkpoint
    again = reopened(content, spec.limits.target, -1.0 if spec.goals.minimize else 1.0)
    if again is not content:  # the stored checkpoint counts the row of the last generation, which is repeated
        folder.checkpoints.save(again.state["progress"]["generation"], *again)
    notes = [f"{problem}; resuming from an earlier checkpoint" for problem in found.problems]
    return replace(spec, checkpoint=again, first_notes=notes)


@dataclass(frozen=True)
class Ended:
    """A finished run."""

    loop: Loop
    summary: dict[str, Any]
    """Contents of summary.json."""
    interrupted: bool
    earlier: Sequence[Row]
    """Rows from before the run was resumed."""


def carry_out(spec: RunSpec, folder: RunFolder | None, listeners: Listeners) -> Ended:
    """Execute a run from the first generation, or from its checkpoint, to the last file.

    Args:
        spec: The run.
        folder: Folder to write to, or None to write nothing.
        listeners: Recorders and callbacks. All recorders are closed at the end.

    Raises:
        InputError: A recorder cannot be started, or progress.csv is damaged.
    """
    engine = spec.engine()
    with _released(engine), closing(engine), Interrupts() as interrupts:
        with ExitStack() as recording:
            info = _prepare_folder(spec, folder)
            announcer = Announcer()
            recording.callback(announcer.connect, ignore_note)  # called last: closing recorders print notes
            recorders = start_recorders(_all_recorders(spec, folder, listeners), info, recording, announcer)
            if folder is not None and isinstance(engine, Dispatcher):
                informed = [*recorders] if engine.reports == "nodes" else []
                recorders.append(WorkersFile(folder.workers, engine.take_report, informed))
                recording.callback(recorders[-1].close)
            loop = Loop(
                spec.objective(engine, interrupts, folder),
                spec.strategy,
                spec.limits,
                spec.eval_every,
                interrupts,
                recorders,
                listeners.callbacks,
                Saver(folder, spec.snapshot_every),
                warn=not listeners.verbose,
            )
            engine.on_note, engine.on_wait = loop.notes.add, loop.deadline
            again = _restore(loop, spec, info)
            announcer.connect(loop.notes.add)
            summary = _write_results(loop, spec, folder, loop.run())
        if folder is not None and summary["generations"] and plotting_available():
            cut = spec.options.get("cutoff") is not None
            plot_run(folder.path, folder.curve, spec.goals.target_return, spec.title, cut=cut)
        if listeners.verbose:
            place = None if folder is None else folder.path
            with suppress(ReaderGone):  # the run is finished and saved
                for line in closing_lines(summary, place, again=again):
                    print_line(wording.get()(line))
    return Ended(loop, summary, bool(interrupts.requested), info.earlier)


@contextmanager
def _released(engine: Engine) -> Iterator[None]:
    """Remove the engine's references to the loop at the end, because the cycle would keep the noise table."""
    try:
        yield
    finally:
        engine.on_note, engine.on_wait = ignore_note, keep_waiting


def _all_recorders(spec: RunSpec, folder: RunFolder | None, listeners: Listeners) -> list[str | Recorder]:
    """Return all recorders in order: files, the caller's, the console, trackers."""
    files = [] if folder is None else ["csv", "population"]
    return [*files, *listeners.recorders, *(["console"] if listeners.verbose else []), *spec.trackers]


def _prepare_folder(spec: RunSpec, folder: RunFolder | None) -> RunInfo:
    """Remove everything newer than the checkpoint from the folder. Return the facts for recorders."""
    facts = {**spec.subject, **spec.machine, **spec.options}
    if folder is None:
        return RunInfo(None, spec.goals, spec.info, facts)
    done = spec.progress
    lost = rewind(folder.progress, done.rows, spec.info)  # first, because it may raise
    folder.forget_after(done.generation)
    if done.best_return is None:
        with storage(folder.best):
            folder.best.unlink(missing_ok=True)
    rewind_notes(folder.notes, done.said)
    rewind_table(folder.population, PopulationFile.COLUMNS, done.rows)
    rewind_table(folder.workers, WorkersFile.COLUMNS, done.rows)
    earlier = read_rows(folder.progress) if folder.progress.exists() else []
    return RunInfo(folder, spec.goals, spec.info, facts, done.rows + 1, lost, earlier)


def _restore(loop: Loop, spec: RunSpec, info: RunInfo) -> bool:
    """Restore ``loop`` from the checkpoint, if any. Return True if the run had already reached its end."""
    if spec.checkpoint is not None:
        loop.load_state(*spec.checkpoint)
    for text in spec.first_notes:
        loop.notes.add(text)
    again = False
    if info.folder is not None:
        if spec.checkpoint is not None:
            again = _resume(loop, spec.checkpoint, info.folder, info.repeated)
        info.folder.write_config(spec.config)  # after all checks; a resumed run may have changed options
    return again


def _resume(loop: Loop, checkpoint: Stored, folder: RunFolder, lost: int) -> bool:
    """Print where the run resumes, with ``lost`` generations to repeat. Return True if nothing is left."""
    if (before := checkpoint.state["versions"]) != versions():
        loop.notes.add(
            f"the run was saved with {before}, but this is {versions()}; results may not be bit-identical"
        )
    if loop.limits.reached(loop.progress) is not None:
        return True  # nothing runs, so the results in the folder stay
    rerun = f"; repeating {counted(lost, 'generation')}" if lost else ""
    loop.notes.add(f"resuming {folder.path} after generation {loop.progress.generation}{rerun}")
    if summary := folder.read_summary():
        folder.rename_made(updates_of(summary), summary.get("best_generation"))
    folder.forget_end()
    return False


def _write_results(loop: Loop, spec: RunSpec, folder: RunFolder | None, reason: str) -> dict[str, Any]:
    """Write the files of a run that ended for ``reason``. Return its summary."""
    if folder is not None and not folder.policy.exists():  # videos in the folder show earlier policies
        folder.rename_made("earlier", "best-earlier")
    loop.objective.save_module(loop.strategy)
    summary = summarize(loop, reason, spec.subject, spec.machine)
    if folder is not None:
        folder.write_summary(summary)
        if not plotting_available():
            loop.notes.add(f"no {folder.curve.name}: plots need matplotlib; {install('plot')}")
    return summary
