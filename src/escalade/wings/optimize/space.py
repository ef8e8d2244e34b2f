"""The space that searches of a function share: where they begin, and their points as the function's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import NoiseTable, Stream, seeds, table_size
from escalade.strategies.base import Direction, Strategy, StrategyFactory
from escalade.strategies.bounds import Bounds
from escalade.strategies.sized import default_population
from escalade.strategies.vectors import detached
from escalade.support.keywords import check_call, fixed_by, keywords_of, parameters_of
from escalade.support.naming import called
from escalade.wings.optimize.earlier import EarlierPoints, beginning
from escalade.wings.optimize.lattice import lattice_of
from escalade.wings.optimize.restarts import Start

Array = NDArray[np.float64]

_AROUND = 1 / 3  # of sigma: the first noise around each earlier point, so that together they make the cloud


class SearchSpace:
    """Makes searches begin, and turns their members into the function's points.

    A strategy searches in coordinates in which the first standard deviations are all equal; each is
    multiplied by its scale and then mapped into the bounds.

    Args:
        x0: where to begin: shape (dimension,), a function that makes such a vector of a random generator, or
            :class:`~escalade.wings.optimize.earlier.EarlierPoints`.
        sigma: the first standard deviation, a number or one a parameter, at most the range between two
            bounds; None is 0.3 of that range and 0.5 elsewhere.
        bounds: see :class:`escalade.strategies.bounds.Bounds`.
        seed: of the noise, and of all that is drawn for restarts.
        integers: numbers of the parameters that are whole numbers in the function's points.
        direction: ``minimize`` or ``maximize``.
        noise: the table that all searches draw from; one made from ``seed`` when not given.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    def __init__(
        self,
        x0: Any,
        sigma: Any,
        bounds: Any,
        seed: int,
        integers: Sequence[int] | None = None,
        direction: Direction = "minimize",
        noise: NoiseTable | None = None,
    ) -> None:
        self.seed, self._direction = seed, direction
        self.rng = np.random.default_rng(int(seeds(seed, Stream.RESTART)))
        self._x0 = x0 if callable(x0) and not isinstance(x0, Tensor) else None
        self._earlier = x0.best(direction) if isinstance(x0, EarlierPoints) else None
        if self._earlier is not None:
            first = self._earlier.mean(axis=0)
        else:
            first = x0 if self._x0 is None else self._x0(self.rng)
        self.tensors = isinstance(first, Tensor)
        self._first = _vector(first)
        self.dimension = len(self._first)
        self.bounds = Bounds(bounds, self.dimension)
        for point in [self._first] if self._earlier is None else self._earlier:
            self.bounds.check(point)
        width = self.bounds.width
        ranges = np.where(self.bounds.both, 0.3 * width, 0.5)
        deviations = np.minimum(_sigma(ranges if sigma is None else sigma, self.dimension), width)
        self._sigma = float(np.exp(np.log(deviations).mean()))
        self._scale = deviations / self._sigma
        self.lattice = None if integers is None else lattice_of(integers, self.bounds, self._scale)
        self._bent = self.bounds if self.lattice is None else self.bounds.without(self.lattice.places)
        self.widest = self._bent.width / self._scale
        """The largest standard deviation of a strategy in each parameter: its box's width, or infinity."""
        self._noise = NoiseTable(seed, table_size(self.dimension)) if noise is None else noise

    def make(self, factory: StrategyFactory, start: Start, number: int) -> Strategy:
        """The strategy of search ``number``, from 0, at its own first point."""
        fixed = fixed_by(factory)
        if own := [name for name in ("sigma", "seed", "direction") if name in fixed]:
            raise InputError(f"`{own[0]}` is fixed in the strategy: give it beside the strategy")
        options: dict[str, Any] = {"sigma": self._sigma * start.sigma_factor, "direction": self._direction}
        options["seed"] = int(seeds(self.seed, Stream.RESTART, number + 1))
        asked = parameters_of(factory).get("population")
        if start.population is not None:
            options["population"] = start.population
        elif asked is not None and asked.default is asked.empty and "population" not in fixed:
            options["population"] = default_population(self.dimension)
        if self.lattice is not None:
            options["lattice"] = self.lattice
        x0 = self._start(number)
        if self._earlier is not None and number == 0:
            x0, options["sigma"], options["covariance"] = beginning(
                self._bent.invert(self._earlier) / self._scale, _AROUND * self._sigma
            )
        known = keywords_of(factory)
        if "perturbation" not in fixed and (known is None or "perturbation" in known):
            options["perturbation"] = self._noise
        mend = "fix it with functools.partial"
        check_call(factory, options, options, f"strategy {called(factory)}", mend)
        made = factory(x0, **options)
        if not isinstance(made, Strategy):
            raise InputError(f"strategy made a {type(made).__name__}, not an escalade Strategy")
        return made

    def _start(self, number: int) -> Array:
        x = self._first
        if number > 0 and self._x0 is not None:
            x = _vector(self._x0(self.rng))
            if len(x) != self.dimension:
                raise InputError(f"x0 gave {len(x)} numbers, and the first time {self.dimension}")
            self.bounds.check(x)
        elif number > 0:
            both, drawn = self.bounds.both, self.rng.uniform(size=self.dimension)
            with np.errstate(invalid="ignore"):
                inside = self.bounds.lower + drawn * (self.bounds.upper - self.bounds.lower)
            x = np.where(both, inside, x)
        return self._bent.invert(x) / self._scale

    def points(self, members: NDArray[np.floating]) -> Array:
        """The function's points for a strategy's members, shape (n, dimension)."""
        points = self._bent.apply(members * self._scale)
        return points if self.lattice is None else self.lattice.round(points)


def _vector(x0: Any) -> Array:
    """``x0`` in float64; InputError where it is no vector of finite numbers."""
    try:
        if isinstance(x0, Tensor):  # numpy has no bfloat16
            x0 = (x0.detach() if x0.is_complex() else x0.detach().double()).cpu().numpy()
        given = np.array(x0)
        if given.dtype.kind not in "biufO":
            raise TypeError
        vector = given.astype(np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError("x0 must be a vector of numbers") from None
    if vector.ndim != 1 or vector.size == 0:
        raise InputError(f"x0 must be a vector of numbers, not an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        place = int(np.isfinite(vector).argmin())
        raise InputError(f"x0 must be finite, and its number {place} is {vector[place]}")
    return vector


def _sigma(sigma: Any, dimension: int) -> Array:
    try:
        deviations = np.broadcast_to(np.array(detached(sigma), dtype=np.float64), (dimension,)).copy()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(f"sigma {sigma!r} must be a number or {dimension} of them") from None
    if not (np.isfinite(deviations) & (deviations > 0)).all():
        raise InputError(f"sigma {sigma!r} must be positive and finite")
    return deviations
