"""The archive of a search for novelty: its behaviours in the plane, and how much of that they cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from escalade.media.charts import Chart, Line
from escalade.media.curves import X_AXES, Curves
from escalade.media.figure import Array, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELLS = 20
"""Number of cells along each side of the plane; coverage counts those that held a behaviour."""

_EARLY_TO_LATE = ("#4477dd", "#cc66aa", "#e69f00")
_MOST_PATHS = 8  # of more centres, paths would hide the places
_MOST_PLACES = 600  # that are drawn; of more, every n-th


@dataclass(frozen=True)
class Archived:
    """The behaviours in an archive, the oldest first."""

    behaviours: NDArray[np.float32]
    """Shape (n, size)."""
    generations: NDArray[np.int64]
    """Generation of each behaviour, 1 for the first; shape (n,)."""
    centers: NDArray[np.int64]
    """Number of each behaviour's centre; shape (n,)."""

    def places(self) -> tuple[Array, tuple[str, str]]:
        """Places in the plane, shape (n, 2), and what its axes count.

        A single number stands over generations. Of more than two, these are the first two principal
        components.
        """
        behaviours = self.behaviours.astype(np.float64)
        size = behaviours.shape[1]
        if size == 1:
            return np.column_stack([self.generations, behaviours[:, 0]]), ("generations", "behaviour")
        if size == 2:
            return behaviours, ("first number of the behaviour", "second number")
        apart = behaviours - behaviours.mean(axis=0)
        _, _, components = np.linalg.svd(apart, full_matrices=len(apart) < 2)  # two, of a single one too
        return apart @ components[:2].T, ("first principal component", "second")

    def in_words(self) -> str:
        """Say it for those who do not see the picture."""
        count = len(set(self.centers.tolist()))
        of = "a centre" if count == 1 else f"{count} centres"
        return f"{len(self.behaviours)} behaviours of {of}, of generations 1 to {self.generations.max()}"


def draw_plane(axes: Axes, archived: Archived) -> None:
    """Draw each behaviour in the colour of its generation, and the path of each centre."""
    from matplotlib.colors import LinearSegmentedColormap

    places, (across, upwards) = archived.places()
    kept = _thinned(np.arange(len(places)))
    numbers = np.unique(archived.centers).tolist()
    for number in numbers if len(numbers) <= _MOST_PATHS else []:
        path = places[_thinned(np.flatnonzero(archived.centers == number))]
        thin = style(number) | {"linewidth": 0.8, "alpha": 0.7}
        axes.plot(*path.T, label=f"path of centre {number}", **thin)
    colours = LinearSegmentedColormap.from_list("early to late", _EARLY_TO_LATE)
    x, y = places[kept].T
    axes.scatter(x, y, s=9, c=archived.generations[kept], cmap=colours, zorder=3)
    axes.set_xlabel(across)
    axes.set_ylabel(upwards)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def coverage(archived: Archived, run: Curves, over: str) -> Chart:
    """Chart how many cells held a behaviour; they divide what was reached by the end.

    A behaviour of one number has cells in a line: the generations beside it cover nothing.
    """
    alone = archived.behaviours.shape[1] == 1
    places = archived.places()[0][:, int(alone) :]
    low, high = places.min(axis=0), places.max(axis=0)
    cells = np.minimum((places - low) / np.where(high > low, high - low, 1.0) * CELLS, CELLS - 1).astype(int)
    _, first = np.unique(cells, axis=0, return_index=True)
    count = np.cumsum(np.isin(np.arange(len(cells)), first)).astype(np.float64)
    line = Line("cells", run.at(over, archived.generations.astype(np.float64)), count, steps=True)
    where = "range" if alone else "plane"
    note = f"the {where} above in {CELLS if alone else f'{CELLS} by {CELLS}'} cells"
    return Chart(f"Cells of the {where} with a behaviour", X_AXES[over][1], [line], note=note)


def _thinned(at: NDArray[Any]) -> NDArray[Any]:
    """At most so many of them, evenly, with the first and the last."""
    kept = np.unique(np.linspace(0, len(at) - 1, min(len(at), _MOST_PLACES)).astype(int))
    return np.asarray(at[kept])
