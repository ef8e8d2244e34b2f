"""The run as a person watches it: a live panel on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from escalade.recorders.row import Recorder, Row
from escalade.support.output import printing, wording

_PLAIN_SECONDS = 2.0
_LIVE_SECONDS = 0.2


@dataclass(frozen=True)
class Goals:
    """The limits and the target of a run; None where there is none."""

    title: str
    target_return: float | None = None
    generations: int | None = None
    env_steps: int | None = None
    seconds: float | None = None
    minimize: bool = False
    """Whether smaller returns are better."""
    print_evaluations: bool = True
    """Whether each evaluation is a line where there is no terminal: not where one comes every generation."""

    def best_of(self, row: Row) -> str:
        """The best return of a generation, in words."""
        return f"min {_number(row.return_min)}" if self.minimize else f"max {_number(row.return_max)}"

    def spent(self, row: Row) -> tuple[str, float] | None:
        """The budget nearest its end, in words and as a share from 0 to 1."""
        shares = [
            (row.generation / self.generations, f"{row.generation:,} of {self.generations:,} generations")
            if self.generations
            else None,
            (row.env_steps / self.env_steps, f"{row.env_steps:,} of {self.env_steps:,} steps")
            if self.env_steps and row.env_steps is not None
            else None,
            (row.seconds / self.seconds, f"{row.seconds:.0f} of {self.seconds:.0f} s")
            if self.seconds
            else None,
        ]
        most = max((share for share in shares if share), default=None)
        return (most[1], min(most[0], 1.0)) if most else None


def make_console(goals: Goals, stream: TextIO | None = None) -> Recorder:
    """The recorder that fits the stream (standard output by default)."""
    stream = stream or sys.stdout
    return LiveConsole(goals, stream) if stream.isatty() else PlainConsole(goals, stream)


class PlainConsole:
    """A line for every evaluation, and for the rest at most one every two seconds; the last always."""

    def __init__(self, goals: Goals, stream: TextIO) -> None:
        self._goals, self._stream, self._printed = goals, stream, 0.0
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
            f"return {_number(row.return_mean)} ± {_number(row.return_std)} ({self._goals.best_of(row)})",
        ]
        if row.eval_return_mean is not None:
            parts.append(f"evaluation {_number(row.eval_return_mean)}")
        if row.steps_per_second is not None:
            parts.append(f"{row.steps_per_second:,.0f} steps/s")
        self._print("  ".join(parts))

    def note(self, text: str) -> None:
        self._print(wording.get()(text))

    def close(self) -> None:
        if self._unprinted is not None:
            self._print_row(self._unprinted)
        with printing():
            self._stream.flush()

    def _print(self, text: str) -> None:
        with printing():
            print(text, file=self._stream, flush=True)


class LiveConsole:
    """A panel that is drawn over itself; notes scroll above it."""

    def __init__(self, goals: Goals, stream: TextIO) -> None:
        self._goals, self._drawn = goals, 0.0
        self._evaluation: float | None = None
        self._first_evaluation: float | None = None
        self._row: Row | None = None
        self._live = Live(console=Console(file=stream), auto_refresh=False, transient=False)
        self._live.start()

    def generation(self, row: Row) -> None:
        self._row = row
        if row.eval_return_mean is not None:
            self._evaluation = row.eval_return_mean
            if self._first_evaluation is None:
                self._first_evaluation = row.eval_return_mean
        now = time.monotonic()
        if now - self._drawn >= _LIVE_SECONDS:
            self._drawn = now
            self._draw()

    def note(self, text: str) -> None:
        self._live.console.print(Text(wording.get()(text)))

    def close(self) -> None:
        self._draw()
        self._live.stop()

    def _draw(self) -> None:
        if self._row is not None:
            self._live.update(self._panel(self._row), refresh=True)

    def _panel(self, row: Row) -> Panel:
        facts = Table.grid(padding=(0, 3))
        facts.add_row(
            f"generation [bold]{row.generation:,}[/]",
            f"steps [bold]{_shown(row.env_steps)}[/]",
            f"[bold]{_shown(row.steps_per_second)}[/] steps/s",
            f"[bold]{row.seconds:.1f}[/] s",
        )
        evaluation = "-" if self._evaluation is None else _number(self._evaluation)
        facts.add_row(
            f"return [bold]{_number(row.return_mean)}[/] ± {_number(row.return_std)}",
            self._goals.best_of(row),
            f"evaluation [bold]{evaluation}[/]",
            f"length {_shown(row.episode_length_mean)}",
        )
        bars = Table.grid(padding=(0, 2))
        spent = self._goals.spent(row)
        if spent:
            bars.add_row("budget", ProgressBar(total=1.0, completed=spent[1], width=40), spent[0])
        if self._goals.target_return is not None:
            words = f"{evaluation} of {_number(self._goals.target_return)}"
            bars.add_row("target", ProgressBar(total=1.0, completed=self._reached(), width=40), words)
        return Panel(Group(facts, bars), title=self._goals.title, title_align="left")

    def _reached(self) -> float:
        """How much of the way from the first evaluation to the target is done, from 0 to 1."""
        target, first, now = self._goals.target_return, self._first_evaluation, self._evaluation
        if target is None or first is None or now is None:
            return 0.0
        sign = -1.0 if self._goals.minimize else 1.0
        if sign * now >= sign * target:
            return 1.0
        way = sign * (target - first)
        return max(0.0, sign * (now - first) / way) if way > 0 else 0.0


def _number(value: float) -> str:
    """Large returns to a tenth, small ones to four digits."""
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"


def _shown(number: float | None) -> str:
    return "-" if number is None else f"{number:,.0f}"
