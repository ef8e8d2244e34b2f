"""The plan of a search of a function: the options of optimize, checked and put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from escalade.errors import InputError
from escalade.perturbation import NoiseTable
from escalade.strategies.base import Direction, StrategyFactory
from escalade.strategies.registry import STRATEGIES
from escalade.strategies.sized import default_population
from escalade.support.keywords import keywords_of
from escalade.support.naming import called
from escalade.support.numbers import population_number, real_number, whole_number
from escalade.support.registry import named
from escalade.training.strategy import factory_of
from escalade.wings.optimize.choice import choose
from escalade.wings.optimize.earlier import EarlierPoints
from escalade.wings.optimize.margin import MarginCMAES
from escalade.wings.optimize.restarts import RESTARTS, Restarts, once
from escalade.wings.optimize.search import Search, Turns
from escalade.wings.optimize.space import SearchSpace
from escalade.wings.optimize.stopping import StopRules

_OVER = ("target", "budget", "seconds", "callback")  # after these no search begins again


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search, as :func:`escalade.optimize` tells them.

    Raises:
        InputError: one is impossible; the message names it.
    """

    strategy: str | StrategyFactory
    direction: Direction
    sigma: Any
    population: int | None
    bounds: Any
    integers: Sequence[int] | None
    budget: int | None
    target: float | None
    tolerance: float
    restarts: str | None

    def __post_init__(self) -> None:
        if self.budget is not None:
            whole_number(self.budget, "budget", 1)
        if self.population is not None:
            population_number(self.population, 2)
        if self.target is not None:
            real_number(self.target, "target")


class SearchPlan:
    """One function's search: its space, who searches there, and which search follows on which.

    Args:
        options: of the search.
        x0: where to begin, as in :func:`escalade.optimize`.
        seed: of the search.
        noise: the table that all strategies draw from; one made from the seed when not given.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    def __init__(self, options: SearchOptions, x0: Any, seed: int, noise: NoiseTable | None = None) -> None:
        self._options = options
        integers = options.integers
        self.space = SearchSpace(x0, options.sigma, options.bounds, seed, integers, options.direction, noise)
        strategy, self.note = options.strategy, ""
        if strategy == "auto":
            choice = choose(
                self.space.dimension,
                options.budget,
                matrix=integers is not None or isinstance(x0, EarlierPoints),
                restarts=options.restarts is not None,
                population=options.population,
            )
            strategy, self.note = choice.name, f"auto takes {choice.name}: {choice.why}"
        if isinstance(strategy, type):  # a class of ours goes by its name
            home = f"{strategy.__module__}:{strategy.__qualname__}"
            strategy = next((name for name, entry in STRATEGIES.items() if entry.home == home), strategy)
        self.name = called(strategy)
        self._factory = factory_of(strategy)
        taken = keywords_of(self._factory)
        if isinstance(x0, EarlierPoints) and taken is not None and "covariance" not in taken:
            raise InputError("EarlierPoints are for strategy cma-es: give a vector as x0")
        if integers is not None:
            if strategy != "cma-es":
                raise InputError(
                    "integers is for strategy cma-es: leave it out, or round within the function"
                )
            self._factory = MarginCMAES
        self._starts = self._scheduled(strategy, options.restarts)

    def _scheduled(self, strategy: str | StrategyFactory, restarts: str | None) -> Restarts:
        if restarts is None:
            return once(self._options.population)
        if callable(strategy) or not STRATEGIES[strategy].restarts:
            able = " or ".join(sorted(name for name, entry in STRATEGIES.items() if entry.restarts))
            raise InputError(f"restarts={restarts!r} is for strategy {able}: leave it out")
        population = self._options.population
        first = default_population(self.space.dimension) if population is None else population
        return named("restarts", restarts, RESTARTS)(first, self.space.rng)

    def turns(self, search: Search) -> Turns:
        """One search after another; why the last one ended."""
        start = next(self._starts)
        while True:
            before = search.evaluations
            made = self.space.make(self._factory, start, search.begun)
            limit = None if start.budget is None else before + start.budget
            rules = StopRules(made, self._options.tolerance, np.isfinite(self.space.widest))
            reason = yield from search.run(made, rules, limit)
            if reason in _OVER:
                return reason
            try:
                start = self._starts.send(search.evaluations - before)
            except StopIteration:
                return reason
