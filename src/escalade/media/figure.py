"""What all pictures share: colours, axes, legends, and files that are written whole."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from escalade.errors import InputError
from escalade.storage.files import write_bytes
from escalade.support.installing import install
from escalade.support.numbers import number
from escalade.support.output import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette (2008), made for colour-blind readers, without its yellow: white hides that."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
"""Line styles: four, where there are seven colours, so that 28 curves differ in one or the other."""

GREY = "#66717e"

_FORMATS = (".png", ".pdf", ".svg")
_STRETCH = 3.0  # how many times the robust range the full one may be before it is cut


def plotting_available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def check_output(output: Path) -> None:
    """Refuse what a picture cannot be written to.

    Raises:
        InputError: matplotlib or the folder is missing, or the ending is another than png, pdf or svg.
    """
    if not plotting_available():
        raise InputError(f"plots need matplotlib: {install('plot')}")
    if output.suffix.lower() not in _FORMATS:
        raise InputError(f"`output` {output} must end in {', '.join(_FORMATS)}")
    if not output.parent.is_dir():
        raise InputError(f"`output` {output}: there is no folder {output.parent}")


def save_figure(figure: Figure, output: Path) -> None:
    """Write a picture, whole or not at all."""
    picture = io.BytesIO()
    figure.savefig(picture, format=output.suffix.lower()[1:], dpi=120)
    write_bytes(output, picture.getvalue())


def style(number: int) -> dict[str, Any]:
    """Colour and line style of the curve with this number."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}


def finish(axes: Axes, unit: str, title: str, *, what: str = "return", below: bool = False) -> None:
    """Name the axes of a picture of ``what``, and put its legend beside them, or ``below`` them."""
    from matplotlib.ticker import EngFormatter

    axes.set_xlabel(unit)
    axes.set_ylabel(what)
    axes.set_title(visible(title))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(left=0)
    if axes.get_xlim()[1] >= 1000:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if not axes.get_legend_handles_labels()[0]:
        return
    if below:
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize="small")
    else:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def widened(labels: Iterable[str]) -> float:
    """Inches that a legend of these labels takes beside the axes."""
    lines = [line for label in labels for line in label.splitlines()]
    return 0.6 + 0.085 * max(map(len, lines), default=0)


def fit_returns(
    axes: Axes, drawn: Sequence[Array], shown: Iterable[float] = (), *, around: Sequence[Array] = ()
) -> None:
    """Limit the axis of returns to where curves are, and say so where that cuts any of them.

    The limits hold the middle 95 % of the values drawn, the end of every curve, and ``shown``. They
    are the full range where that is less than three times as long.

    Args:
        axes: of the picture.
        drawn: the curves' values, one array a curve.
        shown: values that must be seen besides.
        around: values that are part of the full range alone, such as the best and the worst members.
    """
    finite = [values[np.isfinite(values)] for values in drawn]
    finite = [values for values in finite if len(values)]
    if not finite:
        return
    kept = [*np.percentile(np.concatenate(finite), [2.5, 97.5]), *(values[-1] for values in finite), *shown]
    low, high = float(min(kept)), float(max(kept))
    everything = np.concatenate([*finite, *(values[np.isfinite(values)] for values in around)])
    lowest, highest = min(low, float(everything.min())), max(high, float(everything.max()))
    if highest - lowest <= _STRETCH * (high - low) or high == low:
        low, high = lowest, highest
    room = 0.05 * (high - low) or max(abs(high), 1.0) * 0.05
    axes.set_ylim(low - room, high + room)
    cut = [number(end) for end in (lowest, highest) if not low - room <= end <= high + room]
    if cut:
        text = f"the axis is cut: values go on to {' and '.join(cut)}"
        axes.text(0.99, 0.01, text, fontsize=8, color=GREY, ha="right", va="bottom", transform=axes.transAxes)
