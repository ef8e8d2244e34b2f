"""The space that searches of a function share: where they begin, and their points as the function's.

What a search has at the places of whole numbers is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation import NoiseSource, Stream, seeds
from escalade.strategies.base import Direction, Strategy, StrategyFactory
from escalade.strategies.bounds import Bounds, confine
from escalade.strategies.evolution_paths import mu_eff_of
from escalade.strategies.ranking import default_population, log_weights
from escalade.support.keywords import fixed_by, parameters_of
from escalade.support.numbers import whole_number
from escalade.training.strategy import build_strategy, takes

Array = NDArray[np.float64]

_SHARE = 0.1  # of earlier points: the paper's gamma
_FLOOR, _AGAIN = 0.2, 0.1  # the smallest standard deviation of a whole number; after a restart
_AROUND = 1 / 3  # of sigma: the first noise around each earlier point, so that together they make the cloud


class EarlierPoints:
    """Points whose values are known, of the same function or one like it: where a search may begin.

    Nomura, Watanabe, Akimoto, Ozaki and Onishi 2021, "Warm starting CMA-ES for hyperparameter optimization",
    AAAI, arXiv 2012.06932, section 4. Given to :func:`escalade.optimize` in place of ``x0``. The search
    begins at the mean of the best tenth of the points, with the covariance by which they scatter, plus a
    third of the first sigma.

    Args:
        points: shape (n, dimension), in the function's own units and within the bounds.
        values: the function's, shape (n,). Points whose value is NaN or infinite are left out.

    Raises:
        InputError: the shapes do not fit, a point is not finite, or no value is.
    """

    def __init__(self, points: ArrayLike, values: ArrayLike) -> None:
        self.points, self.values = _numbers(points, "points"), _numbers(values, "values")
        if self.points.ndim != 2 or self.points.size == 0 or self.values.shape != self.points.shape[:1]:
            raise InputError(
                f"points of shape {self.points.shape} and values of shape {self.values.shape} do not fit: "
                "they must be (n, dimension) and (n,)"
            )
        if not np.isfinite(self.points).all() or not np.isfinite(self.values).any():
            raise InputError("points must be finite, and at least one of their values")

    def best(self, direction: Direction) -> Array:
        """The best tenth of the points, at least one, the best first: shape (k, dimension)."""
        known = np.isfinite(self.values)
        points, values = self.points[known], self.values[known]
        order = np.argsort(values if direction == "minimize" else -values, kind="stable")
        return np.asarray(points[order[: max(1, math.floor(_SHARE * len(points)))]])


def beginning(points: Array, spread: float) -> tuple[Array, float, Array]:
    """Return the normal distribution nearest to a mixture of one around each point (equation 9).

    Args:
        points: the best ones, shape (k, dimension).
        spread: the standard deviation around each of them: the paper's alpha.

    Returns:
        Centre, sigma, and a covariance of determinant 1: members are ``center + sigma * N(0, covariance)``.
    """
    dimension = points.shape[1]
    center = points.mean(axis=0)
    away = points - center
    covariance = spread**2 * np.eye(dimension) + away.T @ away / len(points)
    log_variance = np.linalg.slogdet(covariance)[1] / dimension
    return center, math.exp(log_variance / 2), covariance / math.exp(log_variance)


@dataclass(frozen=True)
class Start:
    """The settings that one search is started with."""

    population: int | None
    """Members a generation; None is the strategy's default."""
    sigma_factor: float = 1.0
    """The factor of the first sigma."""
    budget: int | None = None
    """Evaluations after which this search gives way to the next one."""


class SearchSpace:
    """Makes searches begin, and turns their members into the function's points.

    A strategy searches in coordinates in which the first standard deviations are all equal; each is
    multiplied by its scale and then mapped into the bounds. It does not see parameters whose two bounds are
    equal: the function's points have them all.

    Args:
        x0: where to begin: shape (dimension,), a function that makes such a vector of a random generator, or
            :class:`EarlierPoints`.
        sigma: the first standard deviation, a number or one a parameter, at most the range between two
            bounds; None is 0.3 of that range and 0.5 elsewhere.
        bounds: see :class:`escalade.strategies.bounds.Bounds`.
        seed: of the noise, and of all that is drawn for restarts.
        integers: numbers of the parameters that are whole numbers in the function's points.
        direction: ``minimize`` or ``maximize``.
        noise: what all searches draw from; each strategy's own when not given.

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
        noise: NoiseSource | None = None,
    ) -> None:
        self.seed, self._direction = seed, direction
        self.rng = np.random.default_rng(int(seeds(seed, Stream.RESTART)))
        self._x0 = x0 if callable(x0) else None
        self._earlier = x0.best(direction) if isinstance(x0, EarlierPoints) else None
        if self._earlier is not None:
            first = self._earlier.mean(axis=0)
        else:
            first = x0 if self._x0 is None else self._x0(self.rng)
        self.tensors = isinstance(first, Tensor)
        vector = _vector(first)
        self._all = Bounds(bounds, len(vector), fixed=True)
        self._free = np.flatnonzero(self._all.lower < self._all.upper)
        self.dimension = len(self._free)
        self.length = len(vector)
        """Number of the function's parameters, with those that are fixed."""
        if not self.dimension:
            raise InputError("bounds fix every parameter, so there is nothing to search: widen one of them")
        self.bounds = Bounds((self._all.lower[self._free], self._all.upper[self._free]), self.dimension)
        self._first = self._freed(vector)
        if self._earlier is not None:
            self._earlier = np.stack([self._freed(point) for point in self._earlier])
        width = self.bounds.width
        deviations = np.where(self.bounds.both, 0.3 * width, 0.5)
        if sigma is not None:
            deviations = np.minimum(_sigma(sigma, len(vector))[self._free], width)
        self._sigma = float(np.exp(np.log(deviations).mean()))
        self._scale = deviations / self._sigma
        whole = whole_places(() if integers is None else integers, self._all)
        self._whole = np.flatnonzero(np.isin(self._free, whole))
        self._bent = cells(self.bounds, self._whole)
        self.widest = self._bent.width / self._scale
        """The largest standard deviation of a strategy in each parameter: its box's width, or infinity."""
        self.confines = bool(np.isfinite(self.widest).any()) or len(self._whole) > 0
        """True if a standard deviation has such a limit."""
        self.narrowest = np.zeros(self.dimension)
        """The smallest: 0, but for whole numbers, of which all members would be rounded to the same."""
        self._noise = noise

    def make(self, factory: StrategyFactory, start: Start, number: int) -> Strategy:
        """The strategy of search ``number``, from 0, at its own first point."""
        if own := [name for name in ("sigma", "seed", "direction") if name in fixed_by(factory)]:
            raise InputError(f"`{own[0]}` is fixed in the strategy: give it beside the strategy")
        options: dict[str, Any] = {
            "population": start.population,
            "sigma": self._sigma * start.sigma_factor,
            "direction": self._direction,
            "seed": int(seeds(self.seed, Stream.RESTART, number + 1)),
        }
        asked = parameters_of(factory).get("population")
        if start.population is None and asked is not None and asked.default is asked.empty:
            options["population"] = default_population(self.dimension)
        if self._noise is not None and takes(factory, "perturbation"):
            options["perturbation"] = self._noise
        x0 = self._start(number)
        if self._earlier is not None and number == 0:
            x0, options["sigma"], options["covariance"] = beginning(
                self._bent.invert(self._earlier) / self._scale, _AROUND * self._sigma
            )
        made = build_strategy(factory, x0, options, "fix it with functools.partial")
        # Marty et al. 2024, "LB+IC-CMA-ES", PPSN, without the half: of many whole numbers, most must stay as
        # they are. Measured in benchmarks/coco.md.
        many = mu_eff_of(log_weights(made.population_size)) / (2 * self.dimension)
        self.narrowest[self._whole] = min(_AGAIN if number else _FLOOR, many) / self._scale[self._whole]
        confine(made, self.widest, self.narrowest)
        return made

    def _start(self, number: int) -> Array:
        if number == 0:
            x = self._first
        elif self._x0 is not None:
            x = self._freed(_vector(self._x0(self.rng)))
        else:
            drawn = self.rng.uniform(size=self.dimension)
            with np.errstate(invalid="ignore"):
                inside = self.bounds.lower + drawn * self.bounds.width
            x = np.where(self.bounds.both, inside, self._first)
        return self._bent.invert(x) / self._scale

    def points(self, members: NDArray[np.floating]) -> Array:
        """The function's points for a strategy's members of shape (n, dimension)."""
        points = self._bent.apply(members * self._scale)
        if len(self._whole):
            points = rounded(points, self.bounds, self._whole)
        if self.dimension == len(self._all.lower):
            return points
        found = np.tile(self._all.lower, (*points.shape[:-1], 1))
        found[..., self._free] = points
        return found

    def _freed(self, x: Array) -> Array:
        """The numbers of a point that are not fixed; InputError if it is outside the bounds."""
        self._all.check(x)
        return x[self._free]


def _numbers(given: Any, name: str) -> Array:
    """Return a copy of ``given`` in float64; InputError if it does not hold numbers."""
    try:
        # Numpy has no bfloat16.
        array = given.detach().double().cpu().numpy() if isinstance(given, Tensor) else given
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, not {given!r}") from None


def _vector(x0: Any) -> Array:
    vector = _numbers(x0, "x0")
    if vector.ndim != 1 or vector.size == 0:
        raise InputError(f"x0 must be a vector of numbers, not an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        place = int(np.isfinite(vector).argmin())
        raise InputError(f"x0 must be finite, and its number {place} is {vector[place]}")
    return vector


def _sigma(sigma: Any, dimension: int) -> Array:
    deviations = _numbers(sigma, "sigma")
    if deviations.shape not in ((), (1,), (dimension,)):
        raise InputError(f"sigma {sigma!r} must be a number or {dimension} of them")
    if not (np.isfinite(deviations) & (deviations > 0)).all():
        raise InputError(f"sigma {sigma!r} must be positive and finite")
    return np.broadcast_to(deviations, (dimension,))


def whole_places(integers: Sequence[int] | NDArray[np.generic], bounds: Bounds) -> NDArray[np.int64]:
    """The numbers of the parameters ``integers``, numbers or a mask, of a vector with these bounds.

    Raises:
        InputError: they are no parameters of the vector, or leave fewer than two whole numbers.
    """
    given, dimension = np.asarray(integers), len(bounds.lower)
    mask = given.dtype == np.bool_
    if given.ndim != 1 or (mask and len(given) != dimension):
        raise InputError(
            "integers must be numbers of parameters, such as [0, 3], or one truth value for each of the "
            f"{dimension} parameters"
        )
    numbers = np.flatnonzero(given) if mask else given
    places = {whole_number(place, "integers") for place in numbers.tolist()}
    if wrong := [place for place in places if not 0 <= place < dimension]:
        raise InputError(f"integers: there is no parameter {wrong[0]}, but those from 0 to {dimension - 1}")
    found = np.array(sorted(places), dtype=np.int64)
    least = (bounds.lower < bounds.upper)[found]  # one whole number will do if it is fixed
    narrow = found[np.floor(bounds.upper[found]) - np.ceil(bounds.lower[found]) < least]
    if len(narrow):
        raise InputError(
            f"integers: the bounds of parameter {narrow[0]} leave fewer than two whole numbers: widen them, "
            "or leave it out of the search"
        )
    return found


def cells(bounds: Bounds, places: NDArray[np.int64]) -> Bounds:
    """The bounds of the numbers that are rounded, so that each whole one has as much room as any other."""
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lower[places], upper[places] = np.ceil(lower[places]) - 0.5, np.floor(upper[places]) + 0.5
    return Bounds((lower, upper), len(lower))


def rounded(points: NDArray[np.float64], bounds: Bounds, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """``points``, shape (..., dimension), with whole numbers within the bounds at ``places``."""
    found = points.copy()
    lowest, highest = np.ceil(bounds.lower[places]), np.floor(bounds.upper[places])
    found[..., places] = np.clip(np.rint(points[..., places]), lowest, highest)
    return found
