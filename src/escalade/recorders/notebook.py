"""A learning curve in a notebook that is drawn again while the run goes on."""

from __future__ import annotations

import io
import math
import time
from typing import Any

from escalade.recorders.goals import RunInfo, duration
from escalade.recorders.row import History, Row
from escalade.support.numbers import LARGEST, number

_SECONDS = 1.0  # between two pictures, at least
_TIMES = 20.0  # what a picture took, likewise


class NotebookPlot:
    """Draws evaluations, the population's mean and its range, in the output of the cell that trains."""

    def __init__(self, run: RunInfo) -> None:
        self._goals = run.goals
        self._rows: list[Row] = []
        self._next = 0.0
        self._display: Any = None

    def generation(self, row: Row) -> None:
        self._rows.append(row)
        began = time.monotonic()
        if began >= self._next:
            self._show()
            now = time.monotonic()
            self._next = now + max(_SECONDS, _TIMES * (now - began))

    def note(self, text: str) -> None:
        """Notes are the console's business."""

    def close(self) -> None:
        if self._rows:
            self._show()

    def _show(self) -> None:
        from IPython import display as ipython

        kernel: Any = ipython  # which has no types
        picture = kernel.Image(data=self._draw(), format="png")
        if self._display is None:
            self._display = kernel.display(picture, display_id=True)
        else:
            self._display.update(picture)

    def _draw(self) -> bytes:
        from matplotlib.figure import Figure

        history, last = History(self._rows), self._rows[-1]
        figure = Figure(figsize=(7, 3.5), layout="constrained")
        axes = figure.subplots()
        steps, unit = history["env_steps"], "training steps"
        if None in steps:
            steps, unit = history["episodes"], "calls of fitness"
        worst, mean, best = (_drawable(history[name]) for name in ("return_min", "return_mean", "return_max"))
        axes.fill_between(steps, worst, best, color="#2a6fbb", alpha=0.13, linewidth=0)
        axes.plot(steps, mean, color="#2a6fbb", alpha=0.6, linewidth=1, label="population mean")
        evaluated = [(at, value) for at, value in zip(steps, history["eval_return_mean"], strict=True)]
        known = [(at, value) for at, value in evaluated if value is not None and abs(value) <= LARGEST]
        if known:
            axes.plot(*zip(*known, strict=True), color="#2a6fbb", linewidth=2, label="evaluation")
        target = self._goals.target_return
        if target is not None:
            label = f"target {number(target)}"
            axes.axhline(target, color="#66717e", linestyle="--", linewidth=1, label=label)
        axes.set(xlabel=unit, ylabel="return")
        axes.set_title(f"generation {last.generation:,}, {duration(last.seconds)}", loc="left", fontsize=10)
        axes.legend(frameon=False, loc="best")
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=100)
        return data.getvalue()


def _drawable(column: list[float]) -> list[float]:
    return [value if abs(value) <= LARGEST else math.nan for value in column]
