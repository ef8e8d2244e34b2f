"""Pictures of a sweep: its trials in turn, which options matter, and how they go together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from escalade.media.figure import COLOURS, GREY, check_output, fit_returns, save_figure
from escalade.storage.files import AnyPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TICKS = 5


def draw_history(
    values: Sequence[tuple[int, float]], output: AnyPath, pruned: Sequence[tuple[int, float]] = ()
) -> None:
    """Draw each trial's return, and the best so far.

    Args:
        values: numbers and returns of the trials that ran to their end, at least one.
        pruned: numbers, and the last evaluations, of those that did not.
        output: a png, pdf or svg file.

    Raises:
        InputError: matplotlib is missing, or the output's ending is another.
    """
    output = Path(output)
    check_output(output)
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    numbers, returns = (np.array(column, float) for column in zip(*values, strict=True))
    best = np.maximum.accumulate(returns)
    axes.plot(numbers, returns, "o", color=COLOURS[0], label="trial")
    if pruned:
        axes.plot(*zip(*pruned, strict=True), "x", color=GREY, label="pruned trial, where it stood")
    axes.plot(numbers, best, color=COLOURS[1], drawstyle="steps-post", label="best so far")
    fit_returns(axes, [returns, best])
    axes.set_xlabel("trial")
    axes.set_ylabel("return")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside upper right", ncols=3)
    save_figure(figure, output)


def draw_importances(importances: Mapping[str, float], output: AnyPath) -> None:
    """Draw how much each option matters, as bars, largest first.

    Args:
        importances: by option; they sum to 1.
        output: a png, pdf or svg file.

    Raises:
        InputError: matplotlib is missing, or the output's ending is another.
    """
    output = Path(output)
    check_output(output)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.2 + 0.4 * len(importances)), layout="constrained")
    axes = figure.subplots()
    names = sorted(importances, key=lambda name: importances[name])
    bars = axes.barh(names, [importances[name] for name in names], color=COLOURS[0], height=0.6)
    axes.bar_label(bars, fmt="%.2f", padding=4)
    axes.set_xlim(0, 1.1 * max(importances.values()))
    axes.set_xlabel("importance for the return (PED-ANOVA, parts of 1)")
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, output)


def draw_parallel(trials: Sequence[tuple[Mapping[str, Any], float]], log: set[str], output: AnyPath) -> None:
    """Draw each trial as a line through its options, the darker the better: parallel coordinates.

    Args:
        trials: the options and the return of each, at least one.
        log: the options whose axis is logarithmic.
        output: a png, pdf or svg file.

    Raises:
        InputError: matplotlib is missing, or the output's ending is another.
    """
    output = Path(output)
    check_output(output)
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    names = list(trials[0][0])
    figure = Figure(figsize=(2.2 + 1.6 * (len(names) + 1), 4.5), layout="constrained")
    axes = figure.subplots()
    returns = np.array([value for _, value in trials])
    scales = [_Scale([options[name] for options, _ in trials], name in log) for name in names]
    scales.append(_Scale(list(returns), False))
    colours = ScalarMappable(Normalize(*np.percentile(returns, [5, 100])), "viridis_r")
    for options, value in sorted(trials, key=lambda trial: trial[1]):  # the best on top
        row = [*(options[name] for name in names), value]
        heights = [scale.height(one) for scale, one in zip(scales, row, strict=True)]
        colour = colours.to_rgba(np.array(value))
        axes.plot(range(len(heights)), heights, color=colour, alpha=0.8, linewidth=1.5)
    for place, scale in enumerate(scales):
        _draw_axis(axes, place, scale)
    axes.set_xticks(range(len(scales)), [*names, "return"])
    axes.set_yticks([])
    axes.set_xlim(-0.2, len(names) + 0.6)
    axes.spines[:].set_visible(False)
    axes.tick_params(axis="x", length=0, pad=10)
    save_figure(figure, output)


class _Scale:
    """From an option's values to heights between 0 and 1, and the ticks of its axis."""

    def __init__(self, values: Sequence[Any], log: bool) -> None:
        self._log = log
        if all(isinstance(value, int | float) for value in values):
            self._places: dict[Any, float] | None = None
            self._low, self._high = (self._moved(end) for end in (min(values), max(values)))
            ends = np.linspace(self._low, self._high, _TICKS)
            self.ticks = [(self._height(end), _written(math.exp(end) if log else end)) for end in ends]
        else:
            texts = sorted(set(map(str, values)))
            self._places = {text: (at + 0.5) / len(texts) for at, text in enumerate(texts)}
            self.ticks = [(at, text) for text, at in self._places.items()]

    def height(self, value: Any) -> float:
        """Where a value stands."""
        return self._height(self._moved(value)) if self._places is None else self._places[str(value)]

    def _moved(self, value: float) -> float:
        return math.log(value) if self._log else float(value)

    def _height(self, moved: float) -> float:
        return (moved - self._low) / (self._high - self._low) if self._high > self._low else 0.5


def _written(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _draw_axis(axes: Axes, place: int, scale: _Scale) -> None:
    axes.plot([place, place], [0, 1], color=GREY, linewidth=1, zorder=5)
    for height, text in dict(scale.ticks).items():
        axes.plot([place - 0.02, place], [height, height], color=GREY, linewidth=1, zorder=5)
        axes.text(
            place + 0.03,
            height,
            text,
            fontsize=8,
            va="center",
            zorder=6,
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8},
        )
