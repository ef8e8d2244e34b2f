"""The result of a search, and how a notebook shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.support.shown import shown, table

_FACTS = ("best_fitness", "strategy", "stop_reason", "evaluations", "failures", "restarts")
_NUMBERS = 8  # of the best point in a notebook


@dataclass(frozen=True)
class Optimum:
    """The result of :func:`escalade.optimize`.

    ``best`` is the best point, of the kind that ``x0`` is (a numpy array, or a tensor), float64, shape
    (dimension,), within the bounds; ``best_fitness`` is what the function gave there. ``center`` is the last
    centre of the search that found it, of the same kind: often the better answer where the function is noisy.
    ``history`` holds the best and the mean fitness of each generation, shape (generations, 2).
    ``evaluations`` counts points, ``failures`` those at which the function raised what ``catch`` names,
    ``restarts`` the searches after the first. ``strategy`` is the name of what searched.

    ``stop_reason`` is ``target``, ``budget``, ``seconds``, ``callback``, ``interrupted`` (Ctrl-C), or why the
    last search ended: ``tolx`` (the standard deviations are tiny), ``tolfun`` or ``tolfunhist`` (the
    fitness changes no more), ``tolxup`` (one without two bounds grew ten thousandfold), ``noeffect`` (they
    are below the centre's last bit), ``condition`` (the covariance is numerically useless), ``stagnation``
    or ``generations`` (it took too long), ``diverged`` (its numbers are too large),
    ``limit`` (a small search of ``bipop`` had used its share).
    """

    best: Any
    best_fitness: float
    center: Any
    history: NDArray[np.float64]
    evaluations: int
    failures: int
    restarts: int
    stop_reason: str
    strategy: str

    def _repr_html_(self) -> str:
        best = np.asarray(self.best)
        more = ", ..." if len(best) > _NUMBERS else ""
        facts = {name: shown(getattr(self, name)) for name in _FACTS}
        facts |= {"generations": str(len(self.history))}
        facts |= {"best": ", ".join(shown(float(number)) for number in best[:_NUMBERS]) + more}
        return table(f"optimum of {len(best):,} parameters", facts)
