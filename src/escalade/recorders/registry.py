"""The recorders by name: a new one is a file in this room and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final

from escalade.errors import InputError, nearest
from escalade.recorders.console import make_console
from escalade.recorders.notebook import NotebookPlot
from escalade.recorders.population import PopulationFile
from escalade.recorders.progress import ProgressFile
from escalade.recorders.recorded import Recorded
from escalade.recorders.row import Recorder
from escalade.recorders.tracking import TRACKERS, Tracking, check_tracker
from escalade.support.imports import import_named

Factory = Callable[[Recorded], Recorder]

RECORDERS: Final[dict[str, Factory]] = {
    "csv": lambda run: ProgressFile(run.files.progress, run.info),
    "console": lambda run: make_console(run.goals, earlier=run.earlier),
    "notebook": lambda run: NotebookPlot(run.goals),
    "population": lambda run: PopulationFile(run.files.population),
    **{name: partial(Tracking, name) for name in TRACKERS},
}
"""What makes a recorder for a run, by name."""

_METHODS = ("generation", "note", "close")


def check_recorders(recorders: Sequence[str | Recorder], option: str = "recorders") -> None:
    """Refuse what :func:`start_recorders` could not start; ``option`` is who asked for it.

    Raises:
        InputError: a name is unknown, its package is missing, or an object is no recorder.
    """
    if isinstance(recorders, str) or not isinstance(recorders, Sequence):
        raise InputError(f"`{option}` must be a list of names and recorders, not {recorders!r}")
    for which in recorders:
        if isinstance(which, str):
            _named(which, option)
            if which in TRACKERS:
                check_tracker(which)
        else:
            _check_methods(which, repr(which), option)


def start_recorders(wanted: Sequence[str | Recorder], run: Recorded, closing: ExitStack) -> list[Recorder]:
    """A recorder for each of ``wanted``, a name that comes again left out; ``closing`` closes them all.

    Raises:
        InputError: a name is unknown, or what it records into cannot be written.
    """
    named: set[str] = set()
    started: list[Recorder] = []
    announcer = _Announcer()
    run = replace(run, say=announcer)
    for which in wanted:
        if isinstance(which, str) and which in named:
            continue
        named |= {which} if isinstance(which, str) else set()
        started.append(start_recorder(which, run))
        closing.callback(started[-1].close)
    announcer.tell(started)
    return started


class _Announcer:
    """Gives lines to all recorders; what is said before all of them are there waits for them."""

    def __init__(self) -> None:
        self._recorders: Sequence[Recorder] | None = None
        self._waiting: list[str] = []

    def __call__(self, text: str) -> None:
        if self._recorders is None:
            self._waiting.append(text)
            return
        for recorder in self._recorders:
            recorder.note(text)

    def tell(self, recorders: Sequence[Recorder]) -> None:
        """From now on, lines go to these."""
        self._recorders = recorders
        for text in self._waiting:
            self(text)


def start_recorder(which: str | Recorder, run: Recorded) -> Recorder:
    """The recorder called ``which``, made for ``run``; a recorder that is made already is returned as it is.

    Args:
        which: a key of :data:`RECORDERS`, ``package.module:Recorder`` for a class (or a function) of yours
            that is called with ``run``, or a recorder.
        run: what it records.

    Raises:
        InputError: there is none of that name, or what it records into cannot be written.
    """
    if not isinstance(which, str):
        return which
    recorder = _named(which)(run)
    if ":" in which:
        _check_methods(recorder, which, "recorders")
    return recorder


def _check_methods(recorder: Any, name: str, option: str) -> None:
    if not all(callable(getattr(recorder, method, None)) for method in _METHODS):
        raise InputError(
            f"`{option}`: {name} is no recorder: it needs the methods generation, note and close"
        )


def _named(name: str, option: str = "recorders") -> Factory:
    if ":" in name:
        return _imported(name, option)
    if name not in RECORDERS:
        hint = nearest(name, RECORDERS) or f": {', '.join(RECORDERS)}"
        raise InputError(f"`{option}`: there is no recorder {name!r}{hint}")
    return RECORDERS[name]


def _imported(text: str, option: str) -> Factory:
    """What ``package.module:Name`` names."""
    module_name, _, name = text.partition(":")
    module = import_named(module_name, f"`{option}` {text}")
    factory = getattr(module, name, None)
    if not callable(factory):
        near = nearest(name, [known for known in vars(module) if not known.startswith("_")])
        raise InputError(f"`{option}` {text}: module {module_name} has no {name}{near}")
    return factory  # type: ignore[no-any-return]
