"""Shared by all pictures: colours, line styles, the axis of returns, and files that are written whole."""

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

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette (2008), made for colour-blind readers, without its yellow: white hides that."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 2)), (0, (5, 1.5, 1, 1.5)))
"""Line styles: four, where there are seven colours, so that 28 curves differ in one or the other."""

GREY = "#66717e"

_STRETCH = 3.0  # how many times the robust range the full one may be before it is cut
_PRESSED = 4.0  # how many times as long a value beside the curves may make the axis


def plotting_available() -> bool:
    """True where matplotlib is installed."""
    return not missing("matplotlib")


def check_picture(output: Path) -> None:
    """Refuse what a picture cannot be written to.

    Raises:
        InputError: matplotlib or the folder is missing, or the ending is another than png, pdf or svg.
    """
    check_installed("a plot", "plot", "matplotlib")
    check_output(output, ".png", ".pdf", ".svg")


def save_figure(figure: Figure, output: Path) -> None:
    """Write a picture, whole or not at all."""
    write_bytes(output, rendered(figure, output.suffix.lower()[1:]))


def rendered(figure: Figure, kind: str) -> bytes:
    """Return a picture as png, pdf or svg: the same bytes for the same picture."""
    from matplotlib import rc_context

    picture = io.BytesIO()
    date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "escalade"}):  # names in an svg are random without it
        figure.savefig(picture, format=kind, dpi=120, metadata=date)
    return picture.getvalue()


def style(number: int) -> dict[str, Any]:
    """Colour and line style of the curve with this number."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}


def fit_returns(
    axes: Axes, drawn: Sequence[Array], shown: Sequence[float] = (), *, around: Sequence[Array] = ()
) -> bool:
    """Limit the axis of returns to where curves are, and say so where that cuts any of them.

    The limits hold the middle 95 % of the values drawn, and the end of every curve. They are the full range
    where that is less than three times as long, and hold ``shown`` where that is not four times as long.

    Args:
        axes: of the picture.
        drawn: the curves' values, one array a curve.
        shown: values that should be seen besides.
        around: values that are part of the full range alone, such as the best and the worst members.

    Returns:
        Whether the axis holds all values of ``shown``.
    """
    finite = [values[np.isfinite(values)] for values in drawn]
    finite = [values for values in finite if len(values)]
    if not finite:
        return True  # matplotlib's own limits hold what is drawn besides
    kept = [*np.percentile(np.concatenate(finite), [2.5, 97.5]), *(values[-1] for values in finite)]
    low, high = float(min(kept)), float(max(kept))
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
        text = f"the axis is cut: values go on to {' and '.join(cut)}"
        axes.text(0.99, 0.01, text, fontsize=8, color=GREY, ha="right", va="bottom", transform=axes.transAxes)
    return seen
