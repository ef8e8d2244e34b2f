"""Colors, line styles, axis limits and file output of all plots."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from escalade.storage.files import check_output, write_bytes
from escalade.support.imports import check_installed, missing
from escalade.support.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Palette of Okabe and Ito (2008) for color-blind readers, without yellow, which is faint on white."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 2)), (0, (5, 1.5, 1, 1.5)))
"""Line styles. Four styles and seven colors distinguish 28 curves."""

GREY = "#66717e"

_STRETCH = 3.0  # the full range is shown up to this multiple of the robust range
_PRESSED = 4.0  # values beside the curves may lengthen the axis up to this factor


def plotting_available() -> bool:
    """Return True if matplotlib is installed."""
    return not missing("matplotlib")


def check_picture(output: Path) -> None:
    """Check that a plot can be written to ``output``.

    Raises:
        InputError: matplotlib or the folder is missing, or the extension is not png, pdf or svg.
    """
    check_installed("a plot", "plot", "matplotlib")
    check_output(output, ".png", ".pdf", ".svg")


def save_figure(figure: Figure, output: Path) -> None:
    """Write a figure atomically."""
    write_bytes(output, rendered(figure, output.suffix.lower()[1:]))


def rendered(figure: Figure, kind: str) -> bytes:
    """Return a figure as png, pdf or svg. Equal figures make identical bytes."""
    from matplotlib import rc_context

    picture = io.BytesIO()
    date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "escalade"}):  # otherwise, names in an svg are random
        figure.savefig(picture, format=kind, dpi=120, metadata=date)
    return picture.getvalue()


def style(number: int) -> dict[str, Any]:
    """Return color and line style of the curve with this number."""
    return {"color": COLORS[number % len(COLORS)], "linestyle": DASHES[number % len(DASHES)]}


def fit_returns(
    axes: Axes, drawn: Sequence[Array], shown: Sequence[float] = (), *, around: Sequence[Array] = ()
) -> bool:
    """Fit the y axis to the curves, and add a note if this cuts some of their values.

    The limits include the middle 95 % of the values and the end of every curve. They are the full range if
    this is at most three times as long. They include ``shown`` if this makes them at most four times as long.

    Args:
        axes: axes of the plot.
        drawn: values of the curves, one array per curve.
        shown: further values that should be visible.
        around: values that only count for the full range, such as those of the best and worst members.

    Returns:
        True if all values of ``shown`` are visible.
    """
    finite = [values[np.isfinite(values)] for values in drawn]
    finite = [values for values in finite if len(values)]
    if not finite:
        return True  # matplotlib's default limits include everything
    inner = [*np.percentile(np.concatenate(finite), [2.5, 97.5]), *(values[-1] for values in finite)]
    low, high = float(min(inner)), float(max(inner))
    everything = np.concatenate([*finite, *(values[np.isfinite(values)] for values in around)])
    lowest, highest = min(low, float(everything.min())), max(high, float(everything.max()))
    if highest - lowest <= _STRETCH * (high - low) or high == low:
        low, high = lowest, highest
    longer = min([low, *shown]), max([high, *shown])
    seen = high == low or longer[1] - longer[0] <= _PRESSED * (high - low)
    low, high = longer if seen else (low, high)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    axes.set_ylim(low - room, high + room)
    cut = [number(end) for end in (lowest, highest) if not low - room <= end <= high + room]
    if cut:
        text = f"axis truncated: values extend to {' and '.join(cut)}"
        axes.text(0.99, 0.01, text, fontsize=8, color=GREY, ha="right", va="bottom", transform=axes.transAxes)
    return seen
