"""A learning curve in a notebook that is drawn again while the run goes on."""

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
        progress = {name: np.array(column, float) for name, column in dict(History(self._rows)).items()}
        chart = learning_curve(Curves(progress, target=self._goals.target_return), "steps")
        last = self._rows[-1]
        title = f"generation {last.generation:,}, {duration(last.seconds)}"
        return rendered(figure_of([replace(chart, title=title)]), "png")
