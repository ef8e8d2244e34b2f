"""Live learning curve in a notebook."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from escalade.media.charts import figure_of
from escalade.media.curves import Curves, learning_curve
from escalade.media.figure import rendered
from escalade.recorders.goals import RunInfo, duration
from escalade.recorders.row import History, Row

_SECONDS = 1.0  # minimum interval between two pictures
_TIMES = 20.0  # minimum interval, relative to the time that a picture takes


class NotebookPlot:
    """Draws evaluations, and the mean and range of the population, in the output of the current cell."""

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
        """Do nothing; the console prints notes."""

    def close(self) -> None:
        if self._rows:
            self._show()

    def _show(self) -> None:
        from IPython import display as ipython

        kernel: Any = ipython  # untyped
        picture = kernel.Image(data=self._draw(), format="png")
        if self._display is None:
            self._display = kernel.display(picture, display_id=True)
        else:
            self._display.update(picture)

    def _draw(self) -> bytes:
        progress = {name: np.array(column, float) for name, column in dict(History(self._rows)).items()}
        chart = learning_curve(Curves(progress, target=self._goals.target_return), "steps")
        last = self._rows[-1]
        title = f"generation {last.generation:,}, {duration(last.seconds)}"
        return rendered(figure_of([replace(chart, title=title)]), "png")
