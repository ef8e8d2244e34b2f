"""Live panel of a run on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TextIO

from escalade.recorders.goals import Goals, duration
from escalade.recorders.row import Row, info_texts
from escalade.support.imports import random_kept
from escalade.support.numbers import number
from escalade.support.output import visible, wording

with random_kept():  # importing rich uses the global generator
    from rich.console import Console, Group
    from rich.control import Control
    from rich.live import Live
    from rich.panel import Panel
    from rich.progress_bar import ProgressBar
    from rich.segment import ControlType
    from rich.table import Table
    from rich.text import Text

_SECONDS = 0.2  # between two drawings
_WIDEST = 110
_BAR = 30
_ECHO = 2  # free columns for the terminal's ^C, which would otherwise wrap to a new line
_ERASE_LINE: list[tuple[ControlType, int]] = [(ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1)]


class LiveConsole:
    """Panel that is redrawn in place.

    Notes scroll above it.

    Args:
        goals: title, limits and target of the run.
        stream: the terminal.
        earlier: earlier rows of a resumed run.
    """

    def __init__(self, goals: Goals, stream: TextIO, earlier: Sequence[Row] = ()) -> None:
        self._goals, self._drawn = goals, 0.0
        evaluations = (row.eval_return_mean for row in reversed(earlier))
        self._evaluation = next((known for known in evaluations if known is not None), None)
        self._since = earlier[-1] if earlier else None  # earlier speed may be that of a different machine
        self._row: Row | None = None
        self._width = self._height = 0  # of the panel on the screen
        self._measured = Console(file=stream)  # tracks the width; that of the other is fixed while drawing
        self._console = Console(file=stream, width=self._measured.width - _ECHO)
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._gone = False
        self._write(self._begin)

    def _begin(self) -> None:
        self._live.start()
        self._console.show_cursor(True)  # so that a killed process leaves the terminal intact

    def _write(self, drawing: Callable[[], None]) -> None:
        """Draw, unless the terminal is closed. The run continues without it."""
        if self._gone:
            return
        try:
            drawing()
        except OSError:
            self._gone = True

    def generation(self, row: Row) -> None:
        self._row = row
        if row.eval_return_mean is not None:
            self._evaluation = row.eval_return_mean
        now = time.monotonic()
        if now - self._drawn >= _SECONDS:
            self._drawn = now
            self._write(self._draw)

    def note(self, text: str) -> None:
        self._write(partial(self._print, text))

    def close(self) -> None:
        self._write(self._draw)
        self._write(self._live.stop)

    def _print(self, text: str) -> None:
        self._follow_resize()
        self._console.print(Text(visible(wording.get()(text))))
        if self._row is not None:
            self._height = len(self._console.render_lines(self._live.renderable))

    def _draw(self) -> None:
        if self._row is None:
            return
        self._follow_resize()
        panel = self._panel(self._row)
        self._live.update(panel, refresh=True)
        self._height = len(self._console.render_lines(panel))

    def _follow_resize(self) -> None:
        """Erase lines that a narrowed terminal has wrapped, which make the panel taller."""
        width = self._measured.width
        self._console.width = width - _ECHO
        if self._height and width < self._width:
            extra = self._height * (-(-self._width // width) - 1)
            self._console.control(Control(*_ERASE_LINE * extra))
        self._width = self._panel_width()

    def _panel_width(self) -> int:
        return min(self._console.width, _WIDEST)

    def _panel(self, row: Row) -> Panel:
        facts = Table.grid(padding=(0, 3))
        left = self._goals.seconds_left(row, self._since)
        facts.add_row(
            f"generation [bold]{row.generation:,}[/]",
            f"steps [bold]{_shown(row.env_steps)}[/]",
            f"[bold]{_shown(row.steps_per_second)}[/] steps/s",
            f"[bold]{row.seconds:.1f}[/] s" + ("" if left is None else f", [bold]{duration(left)}[/] left"),
        )
        target = self._goals.target_return
        facts.add_row(
            f"return [bold]{number(row.return_mean)}[/] ± {number(row.return_std)}",
            self._goals.best_of(row),
            f"evaluation [bold]{number(self._evaluation)}[/]"
            + ("" if target is None else f" of {number(target)}"),
            f"length {_shown(row.episode_length_mean)}",
        )
        parts: list[Table | Text] = [facts]
        if row.info:
            parts.append(Text(visible("   ".join(info_texts(row)))))
        if spent := _spent(self._goals, row):
            budget = Table.grid(padding=(0, 2))
            budget.add_row("budget", ProgressBar(total=1.0, completed=spent[0], width=_BAR), spent[1])
            parts.append(budget)
        return Panel(
            Group(*parts),
            title=Text(visible(self._goals.title)),
            title_align="left",
            width=self._panel_width(),
        )


def _spent(goals: Goals, row: Row) -> tuple[float, str] | None:
    """Return the used share of the budget nearest its end, from 0 to 1, and a text; None without a budget."""
    budgets = (
        (row.generation, goals.generations, "generations"),
        (row.env_steps, goals.env_steps, "steps"),
        (row.seconds, goals.seconds, "s"),
    )
    shares = [
        (min(now / limit, 1.0), f"{now:,.0f} of {limit:,.0f} {unit}")
        for now, limit, unit in budgets
        if limit and now is not None
    ]
    return max(shares, default=None)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
