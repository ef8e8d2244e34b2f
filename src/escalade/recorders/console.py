"""Console output of a run: a live panel in a terminal, otherwise plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from escalade.recorders.goals import Goals, RunInfo, duration
from escalade.recorders.row import Recorder, Row, info_texts
from escalade.strategies.novelty import CENTER
from escalade.support.numbers import number
from escalade.support.output import wording, write_line
from escalade.support.registry import Entry

_PLAIN_SECONDS = 2.0
_LIVE = Entry("the live panel", "escalade.wings.screens.live:LiveConsole")


def make_console(goals: Goals, stream: TextIO | None = None, earlier: Sequence[Row] = ()) -> Recorder:
    """Return the live panel for a terminal, otherwise a :class:`PlainConsole`.

    Args:
        goals: title, limits and target of the run.
        stream: output stream. Defaults to standard output.
        earlier: rows of the run before it was resumed.
    """
    stream = stream or sys.stdout
    kind = _LIVE.load() if stream is not None and stream.isatty() else PlainConsole
    console: Recorder = kind(goals, stream, earlier)
    return console


def start(run: RunInfo) -> Recorder:
    """Return the console of a run."""
    return make_console(run.goals, earlier=run.earlier)


class PlainConsole:
    """Prints a line for every evaluation and the last generation, and otherwise one every two seconds."""

    def __init__(self, goals: Goals, stream: TextIO, earlier: Sequence[Row] = ()) -> None:
        self._goals, self._stream, self._printed = goals, stream, 0.0
        self._since = (
            earlier[-1] if earlier else None
        )  # the pace until then may be that of a different machine
        self._unprinted: Row | None = None
        self._print(goals.title)

    def generation(self, row: Row) -> None:
        now = time.monotonic()
        wanted = row.eval_return_mean is not None and self._goals.print_evaluations
        self._unprinted = row
        if wanted or now - self._printed >= _PLAIN_SECONDS:
            self._printed = now
            self._print_row(row)

    def _print_row(self, row: Row) -> None:
        self._unprinted = None
        parts = [
            f"generation {row.generation}",
            *([] if row.env_steps is None else [f"{row.env_steps:,} steps"]),
            f"{row.seconds:.1f} s",
            f"return {number(row.return_mean)} ± {number(row.return_std)} ({self._goals.best_of(row)})",
        ]
        if row.eval_return_mean is not None:
            center = dict(row.info).get(CENTER)
            of = "" if center is None else f" of center {center}"
            parts.append(f"evaluation {number(row.eval_return_mean)}{of}")
        parts += info_texts(row, without=CENTER)
        if row.steps_per_second is not None:
            parts.append(f"{row.steps_per_second:,.0f} steps/s")
        left = self._goals.seconds_left(row, self._since)
        if left is not None:
            parts.append(f"{duration(left)} left")
        self._print("  ".join(parts))

    def note(self, text: str) -> None:
        self._print(wording.get()(text))

    def close(self) -> None:
        if self._unprinted is not None:
            self._print_row(self._unprinted)

    def _print(self, text: str) -> None:
        write_line(text, self._stream)
