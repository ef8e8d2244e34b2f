"""A small picture of lines over generations, for notebooks."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from escalade.support.imports import missing


def lines_png(lines: Mapping[str, NDArray[np.float64]], what: str) -> bytes | None:
    """Lines over generations from 1, by label, as a png; None where matplotlib is not installed.

    Args:
        lines: numbers, one a generation; NaN leaves a gap.
        what: label of the y axis.
    """
    if missing("matplotlib"):
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    for label, numbers in lines.items():
        axes.plot(
            np.arange(1, len(numbers) + 1), numbers, label=label, marker="o" if len(numbers) == 1 else ""
        )
    axes.set(xlabel="generations", ylabel=what)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return picture.getvalue()
