"""A session: the one door through which a run enters its folder, goes on, and leaves."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from escalade.engines import Engine
from escalade.engines.base import ignore_note, keep_waiting
from escalade.engines.dispatch import Dispatcher
from escalade.errors import InputError
from escalade.media.curves import plot_run
from escalade.media.figure import plotting_available
from escalade.recorders import (
    Announcer,
    ClusterFile,
    Goals,
    PopulationFile,
    Recorder,
    RunInfo,
    WorkersFile,
    check_recorders,
    read_rows,
    rewind,
    rewind_notes,
    rewind_table,
    start_recorders,
)
from escalade.storage.checkpoints import Loaded
from escalade.storage.files import storage
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import Stored, record
from escalade.support.installing import install
from escalade.support.interrupts import Interrupts
from escalade.support.output import ReaderGone, say, wording
from escalade.support.versions import versions
from escalade.training.card import write_card
from escalade.training.closing import closing_lines
from escalade.training.loop import Loop
from escalade.training.progress import Progress
from escalade.training.results import summarize, updates_of
from escalade.training.view import Callback


@dataclass(frozen=True)
class Shared:
    """The part of a checkpoint's state that all runs share."""

    progress: Progress
    versions: dict[str, str]
    strategy: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """The start of a resumed run: a file's content, of which the part that all runs share is checked."""

    content: Stored
    progress: Progress
    """The progress of the run until then."""
    versions: dict[str, str]
    """The versions it ran with."""
    on_disk: bool = True
    """False for a state that was changed in memory."""

    @classmethod
    def of(cls, content: Stored) -> Checkpoint:
        """Check a file's content.

        Raises:
            Damaged: it is not the state of a run.
        """
        shared = {name: content.state.get(name) for name in Shared.__annotations__}
        facts = record(Shared, shared)
        return cls(content, facts.progress, facts.versions)

    def reopened(self, target: float | None, direction: float = 1.0) -> Checkpoint:
        """The same, for another ``target``: a solved run goes on."""
        progress = copy.deepcopy(self.progress)
        progress.reopen(target, direction)
        state = {**self.content.state, "progress": progress.to_dict()}
        return replace(self, content=Stored(self.content.tensors, state), progress=progress, on_disk=False)


@dataclass(frozen=True)
class SessionFacts:
    """Facts and listeners of one run, for its session."""

    folder: RunFolder | None
    """None writes nothing."""
    loaded: Loaded[Checkpoint] | None
    """The checkpoint that a resumed run goes on from."""
    recorders: Sequence[str | Recorder]
    verbose: bool
    goals: Goals
    title: str
    """Title of the learning curve."""
    subject: Mapping[str, Any]
    """The thing that is trained, for the summary."""
    machine: Mapping[str, Any]
    """The machine that it runs on, for the summary."""
    info: tuple[str, ...] = ()
    """The columns of its rows' :attr:`escalade.recorders.Row.info`."""
    trackers: Sequence[str] = ()
    """Names of recorders that come after the console, which shows what they say."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the run, for recorders and the curve."""

    @property
    def wanted(self) -> list[str | Recorder]:
        """All recorders: the file, the caller's own, the console."""
        files = [] if self.folder is None else ["csv", "population"]
        return [*files, *self.recorders, *(["console"] if self.verbose else []), *self.trackers]

    def run_info(self, lost: int) -> RunInfo:
        """Facts for recorders; ``lost`` generations were recorded before, and run again."""
        rows = 0 if self.loaded is None else self.loaded.checkpoint.progress.rows
        facts = {**self.subject, **self.machine, **self.options}
        table = None if self.folder is None else self.folder.progress
        earlier = read_rows(table) if table is not None and table.exists() else []
        return RunInfo(self.folder, self.goals, self.info, facts, rows + 1, lost, earlier)


@dataclass
class Session:
    """One run from its first generation to its last file: see :func:`open_session`."""

    facts: SessionFacts
    engine: Engine
    interrupts: Interrupts
    """The first one only asks for an end, until all files are written."""
    recorders: list[Recorder]
    lost: int
    """Recorded generations that no checkpoint holds: they are run again."""
    announcer: Announcer = field(default_factory=Announcer)
    """The lines of recorders: they are notes of the run."""
    rows: int = 0
    """Recorded generations at the end."""
    summary: dict[str, Any] | None = None
    """The contents of summary.json, once the run has ended."""
    again: bool = False
    """True if the resumed run had reached its target or a limit before."""

    def begin(self, loop: Loop) -> None:
        """Put ``loop`` where the folder stands, with the engine's notes and waits."""
        facts = self.facts
        self.engine.on_note, self.engine.on_wait = loop.notes.say, loop.deadline
        if facts.folder is not None and facts.loaded is not None:
            _go_on(loop, facts.folder, facts.loaded, self.lost)
            self.again = loop.limits.reached(loop.progress) is not None
            if not self.again:  # else nothing runs, and what is there may stay
                summary = facts.folder.read_summary()
                if summary:
                    facts.folder.rename_made(updates_of(summary), summary.get("best_generation"))
                facts.folder.forget_end()
        self.announcer.give_to(loop.notes.say)

    def end(self, loop: Loop, reason: str) -> dict[str, Any]:
        """Leave in the folder what a run leaves that ended for ``reason``; its summary."""
        facts, folder = self.facts, self.facts.folder
        self.rows = loop.progress.rows
        if folder is not None and not folder.policy.exists():  # what was made before is of other policies
            folder.rename_made("earlier", "best-earlier")
        loop.objective.save_module(loop.strategy)
        self.summary = summary = summarize(loop, reason, facts.subject, facts.machine)
        if folder is not None:
            folder.write_summary(summary)
            write_card(folder, facts.title, summary)
            if not plotting_available():
                loop.notes.say(f"no {folder.curve.name}: plots need matplotlib: {install('plot')}")
        return summary


@contextmanager
def open_session(facts: SessionFacts, engine: Engine) -> Iterator[Session]:
    """The one door of ``train``, ``resume`` and ``evolve``: recorders, interrupts and engine, and their end.

    Args:
        facts: the folder, the recorders, and what the summary says.
        engine: what the run's work runs on; closed at the end.

    Raises:
        InputError: a recorder cannot be started, or progress.csv is damaged.
    """
    folder, loaded = facts.folder, facts.loaded
    with _let_go(engine), closing(engine), Interrupts() as interrupts:
        with ExitStack() as recording:
            lost = 0
            if folder is not None:
                done = Progress() if loaded is None else loaded.checkpoint.progress
                if loaded is not None and not loaded.checkpoint.on_disk:
                    # First: the checkpoint that is there counts a row that nobody would write again.
                    folder.checkpoints.save(done.generation, *loaded.checkpoint.content)
                lost = _rewind(folder, done, facts.info)
            announcer = Announcer()
            recording.callback(announcer.give_to, ignore_note)  # at last: recorders speak when they close
            recorders = start_recorders(facts.wanted, facts.run_info(lost), recording, announcer)
            if folder is not None and isinstance(engine, Dispatcher):
                recorders.append(_report_file(folder, engine, recorders))
                recording.callback(recorders[-1].close)
            session = Session(facts, engine, interrupts, recorders, lost, announcer)
            yield session
        if folder is not None and session.rows and plotting_available():
            cut = facts.options.get("cutoff") is not None
            plot_run(folder.path, folder.curve, facts.goals.target_return, facts.title, cut=cut)
        if facts.verbose and session.summary is not None:
            place = None if folder is None else folder.path
            with suppress(ReaderGone):  # the run has ended, and is saved
                for line in closing_lines(session.summary, place, again=session.again):
                    say(wording.get()(line))


@contextmanager
def _let_go(engine: Engine) -> Iterator[None]:
    """Take the loop from the engine at the end: the two hold each other, and the loop a table of noise."""
    try:
        yield
    finally:
        engine.on_note, engine.on_wait = ignore_note, keep_waiting


def _rewind(folder: RunFolder, done: Progress, info: Sequence[str]) -> int:
    """Drop what is later than ``done``, or half written; how many recorded generations that were."""
    lost = rewind(folder.progress, done.rows, info)  # first, as it may refuse
    folder.forget_after(done.generation)
    if done.best_return is None:
        with storage(folder.best):
            folder.best.unlink(missing_ok=True)
    rewind_notes(folder.notes, done.said)
    for path, table in (
        (folder.population, PopulationFile),
        (folder.workers, WorkersFile),
        (folder.cluster, ClusterFile),
    ):
        rewind_table(path, table.COLUMNS, done.rows)
    return lost


def _go_on(loop: Loop, folder: RunFolder, loaded: Loaded[Checkpoint], lost: int) -> None:
    """Take over the checkpoint, and note where the run goes on, if it does; ``lost`` generations rerun."""
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
    if loop.limits.reached(loop.progress) is not None:
        return
    # Of a run that goes on to another target, the later ones did have a checkpoint.
    why = "have no checkpoint and " if checkpoint.on_disk else ""
    again = f": {lost} later ones {why}are run again" if lost else ""
    loop.notes.say(f"resuming {folder.path} after generation {loop.progress.generation}{again}")


def _report_file(folder: RunFolder, engine: Dispatcher, others: Sequence[Recorder]) -> Recorder:
    """The recorder for the engine's statistics, by worker or by node."""
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
