"""Curves of several runs in one picture, a panel for each task."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escalade.media.bands import Band, Curve
from escalade.media.curves import X_AXES
from escalade.media.figure import (
    GREY,
    check_output,
    finish,
    fit_returns,
    save_figure,
    style,
    widened,
)
from escalade.storage.files import AnyPath
from escalade.support.numbers import LARGEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTERS = 44  # in a line of the legend
_CAPTION = "lines: interquartile mean of the runs' {what}; bands: its 95 % bootstrap interval"

_STEPS: dict[str, Any] = {"drawstyle": "steps-post"}  # a run counts with its last evaluation until the next


def draw_bands(
    panels: Mapping[str, Mapping[str, Band]],
    output: AnyPath,
    over: str = "steps",
    *,
    targets: Mapping[str, float] | None = None,
    single: Sequence[Curve] = (),
    what: str = "evaluations",
) -> None:
    """Draw a panel for each task, with a band for each of its settings, into a png, pdf or svg file.

    Args:
        panels: bands by label, by task. A label has the same colour and line style in all of them.
        output: the picture.
        over: a name of :data:`escalade.media.curves.X_AXES`.
        targets: by task; drawn as lines.
        single: curves of single runs, drawn thin in every panel.
        what: what the curves are of.

    Raises:
        InputError: matplotlib is missing, or the output's ending is another.
        StorageFailure: the disk is full.
    """
    output = Path(output)
    check_output(output)
    from matplotlib.figure import Figure

    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    labels = list(dict.fromkeys(label for bands in panels.values() for label in bands))
    for place, (task, bands) in zip(axes, panels.items(), strict=False):
        goal = (targets or {}).get(task)
        _draw_panel(place, {labels.index(label): (label, of) for label, of in bands.items()}, goal, single)
        finish(place, X_AXES[over][1], task, below=len(panels) > 1)
    for place in axes[len(panels) :]:
        place.set_visible(False)
    if any(of.runs > 1 for bands in panels.values() for of in bands.values()):
        figure.supxlabel(_CAPTION.format(what=what), fontsize=8, color=GREY)
    if len(panels) == 1:
        figure.set_size_inches(7.0 + widened(axes[0].get_legend_handles_labels()[1]), 4.8)
    else:
        tallest = max(len("\n".join(place.get_legend_handles_labels()[1]).splitlines()) for place in axes)
        figure.set_size_inches(max(8.0, 5.0 * columns), (4.0 + 0.2 * tallest) * rows)
    save_figure(figure, output)


def _wrapped(label: str) -> str:
    """A label in lines that leave most of the picture to the curves."""
    return textwrap.fill(label, _LETTERS, break_long_words=False, break_on_hyphens=False)


def _draw_panel(
    axes: Axes, bands: Mapping[int, tuple[str, Band]], target: float | None, single: Sequence[Curve]
) -> None:
    drawn = []
    for number, curve in enumerate(single):
        named = "" if number else "single runs"
        axes.plot(curve.at, curve.returns, color=GREY, alpha=0.6, linewidth=0.7, label=named, **_STEPS)
        drawn.append(curve.returns)
    for number, (label, of) in bands.items():
        looks = style(number)
        axes.fill_between(of.at, of.low, of.high, color=looks["color"], alpha=0.18, linewidth=0, step="post")
        runs = f"{of.runs} run{'s' * (of.runs > 1)}"
        if of.at[0] == of.at[-1]:  # one evaluation makes no line
            axes.errorbar(
                of.at[0],
                of.middle[0],
                [[of.middle[0] - of.low[0]], [of.high[0] - of.middle[0]]],
                fmt="o",
                color=looks["color"],
            )
        axes.plot(of.at, of.middle, linewidth=2, label=f"{_wrapped(label)} ({runs})", **_STEPS, **looks)
        drawn += [of.middle, of.low, of.high]
    shown = []
    if target is not None and abs(target) <= LARGEST:
        axes.axhline(target, color=GREY, linestyle="--", linewidth=1, label=f"target {target:g}")
        shown = [target]
    fit_returns(axes, drawn, shown)


def draw_profiles(bands: Mapping[str, Band], output: AnyPath) -> None:
    """Draw performance profiles, by method, into a png, pdf or svg file.

    Args:
        bands: for each method, the share of its runs that score above each of ``at``, with its interval.
        output: the picture.

    Raises:
        InputError: matplotlib is missing, or the output's ending is another.
        StorageFailure: the disk is full.
    """
    output = Path(output)
    check_output(output)
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for number, (label, of) in enumerate(bands.items()):
        looks = style(number)
        axes.fill_between(of.at, of.low, of.high, color=looks["color"], alpha=0.18, linewidth=0)
        axes.plot(of.at, of.middle, linewidth=2, label=f"{_wrapped(label)} ({of.runs} runs)", **looks)
    finish(axes, "normalised score", "performance profiles", what="share of runs with a higher score")
    axes.set_xlim(
        min(float(of.at[0]) for of in bands.values()), max(float(of.at[-1]) for of in bands.values())
    )
    axes.set_ylim(-0.02, 1.02)
    figure.supxlabel("bands: 95 % stratified bootstrap interval", fontsize=8, color=GREY)
    figure.set_size_inches(7.0 + widened(axes.get_legend_handles_labels()[1]), 4.8)
    save_figure(figure, output)
