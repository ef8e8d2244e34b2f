"""Recorders by name. A new recorder is one file and one entry here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from escalade.errors import InputError
from escalade.recorders.goals import RunInfo
from escalade.recorders.row import Recorder
from escalade.support.imports import imported
from escalade.support.registry import Entry, find, named

Factory = Callable[[RunInfo], Recorder]

RECORDERS: Final[dict[str, Entry]] = {
    "csv": Entry("progress.csv", "escalade.recorders.progress:ProgressFile"),
    "console": Entry("the console", "escalade.recorders.console:start"),
    "notebook": Entry(
        "the live plot", "escalade.wings.screens.notebook:NotebookPlot", ("matplotlib", "IPython"), "notebook"
    ),
    "population": Entry("population.csv", "escalade.recorders.progress:PopulationFile"),
    "tensorboard": Entry(
        "TensorBoard", "escalade.wings.trackers.tensorboard:TensorBoard", ("tensorboard",), "tensorboard"
    ),
    "wandb": Entry("Weights & Biases", "escalade.wings.trackers.wandb:Wandb", ("wandb",), "wandb"),
}
"""An entry's home is called with a :class:`RunInfo` and returns a recorder."""

_METHODS = ("generation", "note", "close")


def check_recorders(recorders: Sequence[str | Recorder], option: str = "recorders") -> None:
    """Check that :func:`start_recorders` can start these recorders; ``option`` is named in errors.

    Raises:
        InputError: a name is unknown, its package is missing, or an object is not a recorder.
    """
    if isinstance(recorders, str) or not isinstance(recorders, Sequence):
        raise InputError(f"`{option}` must be a list of names and recorders, not {recorders!r}")
    for which in recorders:
        if isinstance(which, str):
            if ":" in which:
                imported(which, f"`{option}` {which}")
            else:
                named(option, which, RECORDERS).check_installed(option)
        else:
            _check_methods(which, repr(which), option)


def start_recorders(
    wanted: Sequence[str | Recorder], run: RunInfo, closing: ExitStack, announcer: Announcer
) -> list[Recorder]:
    """Start recorders, and register each with ``closing``.

    Repeated names are skipped.

    Args:
        wanted: names and recorder objects.
        run: facts about the run.
        closing: closes the recorders on exit.
        announcer: receives the recorders' lines for the user.

    Raises:
        InputError: a name is unknown, or the output of a recorder cannot be written.
    """
    started: list[Recorder] = []
    run = replace(run, report=announcer)
    for place, which in enumerate(wanted):
        if isinstance(which, str) and which in wanted[:place]:
            continue
        started.append(start_recorder(which, run))
        closing.callback(started[-1].close)
    return started


class Announcer:
    """Forwards lines of recorders to the user. Lines before :meth:`connect` are queued."""

    def __init__(self) -> None:
        self._output: Callable[[str], None] | None = None
        self._waiting: list[str] = []

    def __call__(self, text: str) -> None:
        if self._output is None:
            self._waiting.append(text)
        else:
            self._output(text)

    def connect(self, output: Callable[[str], None]) -> None:
        """Forward queued and future lines to ``output``."""
        self._output = output
        for text in self._waiting:
            output(text)


def start_recorder(which: str | Recorder, run: RunInfo) -> Recorder:
    """Return the recorder called ``which``, made for ``run``, or ``which`` itself if it is a recorder.

    Args:
        which: a key of :data:`RECORDERS`; ``package.module:Recorder``, a class or function that is called
            with ``run``; or a recorder.
        run: facts about the run.

    Raises:
        InputError: the name is unknown, or the recorder's output cannot be written.
    """
    if not isinstance(which, str):
        return which
    recorder: Recorder = find("recorders", which, RECORDERS)(run)
    if ":" in which:
        _check_methods(recorder, which, "recorder")
    return recorder


def _check_methods(recorder: Any, name: str, option: str) -> None:
    known = all(callable(getattr(recorder, method, None)) for method in _METHODS)
    if isinstance(recorder, type) or not known:
        raise InputError(
            f"`{option}`: {name} is not a recorder: use an object with the methods generation, note and "
            "close, or the name of its class as text (MODULE:CLASS)"
        )
