"""Search space of a function: starting points, scales, bounds, fixed and integer parameters."""

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
from escalade.support.arrays import real_numbers
from escalade.support.keywords import fixed_by, parameters_of
from escalade.support.numbers import whole_number
from escalade.training.strategy import build_strategy, takes

Array = NDArray[np.float64]

_SHARE = 0.1  # of earlier points to use: the paper's gamma
_FLOOR, _RESTART_FLOOR = 0.2, 0.1  # smallest standard deviation of an integer; after a restart
_SPREAD = 1 / 3  # standard deviation around each earlier point, relative to sigma: the paper's alpha


class EarlierPoints:
    """Points with known values of the same or a similar function, from which a search can start.

    Pass it as ``x0`` of :func:`escalade.optimize`. The search starts at the mean of the best tenth of the
    points, with their covariance plus a third of the initial sigma. Nomura, Watanabe, Akimoto, Ozaki and
    Onishi 2021, "Warm starting CMA-ES for hyperparameter optimization", AAAI, arXiv 2012.06932, section 4.

    Args:
        points: points in the coordinates of the function, within the bounds, shape (n, dimension).
        values: values of the function, shape (n,). Points with a NaN or infinite value are ignored.

    Raises:
        InputError: the shapes do not match, a point is not finite, or no value is finite.
    """

    def __init__(self, points: ArrayLike, values: ArrayLike) -> None:
        self.points, self.values = real_numbers(points, "points"), real_numbers(values, "values")
        if self.points.ndim != 2 or self.points.size == 0 or self.values.shape != self.points.shape[:1]:
            raise InputError(
                "points and values must have shapes (n, dimension) and (n,), not "
                f"{self.points.shape} and {self.values.shape}"
            )
        if not np.isfinite(self.points).all() or not np.isfinite(self.values).any():
            raise InputError("all points, and at least one of their values, must be finite")

    def best(self, direction: Direction) -> Array:
        """Return the best tenth of the points, at least one, best first, shape (k, dimension)."""
        known = np.isfinite(self.values)
        points, values = self.points[known], self.values[known]
        order = np.argsort(values if direction == "minimize" else -values, kind="stable")
        return np.asarray(points[order[: max(1, math.floor(_SHARE * len(points)))]])


def fit_normal(points: Array, spread: float) -> tuple[Array, float, Array]:
    """Fit a normal distribution to a mixture of one normal distribution around each point (equation 9).

    Args:
        points: best points, shape (k, dimension).
        spread: standard deviation around each point: the paper's alpha.

    Returns:
        Center, sigma, and a covariance with determinant 1: members are ``center + sigma * N(0, covariance)``.
    """
    dimension = points.shape[1]
    center = points.mean(axis=0)
    deviations = points - center
    covariance = spread**2 * np.eye(dimension) + deviations.T @ deviations / len(points)
    log_variance = np.linalg.slogdet(covariance)[1] / dimension
    return center, math.exp(log_variance / 2), covariance / math.exp(log_variance)


@dataclass(frozen=True)
class Start:
    """Settings of one search."""

    population: int | None
    """Members per generation; None for the default of the strategy."""
    sigma_factor: float = 1.0
    """Factor of the initial sigma."""
    budget: int | None = None
    """Maximum number of evaluations of this search."""


class SearchSpace:
    """Creates strategies, and converts their members to points of the function.

    Strategies search in coordinates with equal initial standard deviations. To convert a member, each
    parameter is multiplied by its scale, mapped into the bounds, and rounded if it is an integer. Parameters
    with two equal bounds are fixed, and not part of the members.

    Args:
        x0: starting point, shape (dimension,); a function of a random generator that returns one; or
            :class:`EarlierPoints`.
        sigma: initial standard deviation, a number or one per parameter, at most the range between two
            bounds. None is 0.3 of that range, and 0.5 for parameters without two bounds.
        bounds: see :class:`escalade.strategies.bounds.Bounds`.
        seed: seed of the noise and of all random choices of restarts.
        integers: indices of the parameters that are integers.
        direction: ``minimize`` or ``maximize``.
        noise: noise source shared by all searches; None for separate ones.

    Raises:
        InputError: an argument is invalid; the message names it.
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
        """Number of parameters of the function, including fixed ones."""
        if not self.dimension:
            raise InputError("bounds fix every parameter, so there is nothing to search; widen one of them")
        self.bounds = Bounds((self._all.lower[self._free], self._all.upper[self._free]), self.dimension)
        self._first = self._without_fixed(vector)
        if self._earlier is not None:
            self._earlier = np.stack([self._without_fixed(point) for point in self._earlier])
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
        """Maximum standard deviation per parameter: the range between two bounds, or infinity."""
        self.confines = bool(np.isfinite(self.widest).any()) or len(self._whole) > 0
        """True if a standard deviation is limited."""
        self.narrowest = np.zeros(self.dimension)
        """Minimum standard deviation per parameter: 0, except for integers, which would all round alike."""
        self._noise = noise

    def make(self, factory: StrategyFactory, start: Start, number: int) -> Strategy:
        """Create the strategy of search ``number``, starting at 0, at its starting point."""
        if own := [name for name in ("sigma", "seed", "direction") if name in fixed_by(factory)]:
            raise InputError(f"`{own[0]}` is fixed in the strategy; pass it to optimize instead")
        options: dict[str, Any] = {
            "population": start.population,
            "sigma": self._sigma * start.sigma_factor,
            "direction": self._direction,
            "seed": int(seeds(self.seed, Stream.RESTART, number + 1)),
        }
        parameter = parameters_of(factory).get("population")
        if start.population is None and parameter is not None and parameter.default is parameter.empty:
            options["population"] = default_population(self.dimension)
        if self._noise is not None and takes(factory, "perturbation"):
            options["perturbation"] = self._noise
        x0 = self._start(number)
        if self._earlier is not None and number == 0:
            x0, options["sigma"], options["covariance"] = fit_normal(
                self._bent.invert(self._earlier) / self._scale, _SPREAD * self._sigma
            )
        made = build_strategy(factory, x0, options, "fix it with functools.partial")
        # Marty et al. 2024, "LB+IC-CMA-ES", PPSN, without the half: if there are many integers, most of them
        # must not change. Measured in benchmarks/coco.md.
        many = mu_eff_of(log_weights(made.population_size)) / (2 * self.dimension)
        floor = min(_RESTART_FLOOR if number else _FLOOR, many)
        self.narrowest[self._whole] = floor / self._scale[self._whole]
        confine(made, self.widest, self.narrowest)
        return made

    def _start(self, number: int) -> Array:
        if number == 0:
            x = self._first
        elif self._x0 is not None:
            x = self._without_fixed(_vector(self._x0(self.rng)))
        else:
            drawn = self.rng.uniform(size=self.dimension)
            with np.errstate(invalid="ignore"):
                inside = self.bounds.lower + drawn * self.bounds.width
            x = np.where(self.bounds.both, inside, self._first)
        return self._bent.invert(x) / self._scale

    def points(self, members: NDArray[np.floating]) -> Array:
        """Convert members of a strategy, shape (n, dimension), to points of the function."""
        points = self._bent.apply(members * self._scale)
        if len(self._whole):
            points = rounded(points, self.bounds, self._whole)
        if self.dimension == len(self._all.lower):
            return points
        found = np.tile(self._all.lower, (*points.shape[:-1], 1))
        found[..., self._free] = points
        return found

    def _without_fixed(self, x: Array) -> Array:
        """Return the parameters of a point that are not fixed. Raise InputError if it is out of bounds."""
        self._all.check(x)
        return x[self._free]


def _vector(x0: Any) -> Array:
    vector = real_numbers(x0, "x0")
    if vector.ndim != 1 or vector.size == 0:
        raise InputError(f"x0 must be a vector of numbers, not an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        place = int(np.isfinite(vector).argmin())
        raise InputError(f"x0 must be finite, but x0[{place}] is {vector[place]}")
    return vector


def _sigma(sigma: Any, dimension: int) -> Array:
    deviations = real_numbers(sigma, "sigma")
    if deviations.shape not in ((), (1,), (dimension,)):
        raise InputError(f"sigma {sigma!r} must be a number or {dimension} of them")
    if not (np.isfinite(deviations) & (deviations > 0)).all():
        raise InputError(f"sigma {sigma!r} must be positive and finite")
    return np.broadcast_to(deviations, (dimension,))


def whole_places(integers: Sequence[int] | NDArray[np.generic], bounds: Bounds) -> NDArray[np.int64]:
    """Return the indices of the integer parameters of a vector with these bounds.

    Args:
        integers: indices or a mask.
        bounds: bounds of the vector.

    Raises:
        InputError: an index is out of range, or bounds contain fewer than two integers.
    """
    array, dimension = np.asarray(integers), len(bounds.lower)
    mask = array.dtype == np.bool_
    if array.ndim != 1 or (mask and len(array) != dimension):
        raise InputError(
            "integers must be indices of parameters, such as [0, 3], or a mask with one value for each of "
            f"the {dimension} parameters"
        )
    indices = np.flatnonzero(array) if mask else array
    places = {whole_number(place, "integers") for place in indices.tolist()}
    if wrong := [place for place in places if not 0 <= place < dimension]:
        raise InputError(f"integers: index {wrong[0]} is out of range; use 0 to {dimension - 1}")
    found = np.array(sorted(places), dtype=np.int64)
    least = (bounds.lower < bounds.upper)[found]  # one integer is enough if the parameter is fixed
    narrow = found[np.floor(bounds.upper[found]) - np.ceil(bounds.lower[found]) < least]
    if len(narrow):
        raise InputError(
            f"integers: the bounds of parameter {narrow[0]} contain fewer than two integers; widen them, or "
            "fix the parameter with two equal bounds"
        )
    return found


def cells(bounds: Bounds, places: NDArray[np.int64]) -> Bounds:
    """Return bounds for the values before rounding, which give each integer the same range."""
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lower[places], upper[places] = np.ceil(lower[places]) - 0.5, np.floor(upper[places]) + 0.5
    return Bounds((lower, upper), len(lower))


def rounded(points: NDArray[np.float64], bounds: Bounds, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ``points``, shape (..., dimension), rounded to integers within the bounds at ``places``."""
    found = points.copy()
    lowest, highest = np.ceil(bounds.lower[places]), np.floor(bounds.upper[places])
    found[..., places] = np.clip(np.rint(points[..., places]), lowest, highest)
    return found
