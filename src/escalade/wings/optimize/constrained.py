"""Searches with constraints, for :func:`escalade.optimize` and as an ask-and-tell wrapper of any strategy."""

from __future__ import annotations

import dataclasses
import math
from array import array
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.strategies.base import Strategy
from escalade.strategies.result import Result, rows_of
from escalade.strategies.shaping import usable
from escalade.strategies.tensors import State, copied, restore
from escalade.support.arrays import as_float64
from escalade.wings.optimize.calls import Values
from escalade.wings.optimize.lagrangian import AugmentedLagrangian, excess
from escalade.wings.optimize.search import Optimum, Search
from escalade.wings.optimize.space import Start

Array = NDArray[np.float64]

_PREFIX = "constraints."


class _Best:
    """The best feasible point so far, or the least violated point if there is no feasible one."""

    adapted = ("point", "loss", "violations")

    def __init__(self) -> None:
        self.point, self.loss, self.violations = np.empty(0), math.inf, np.empty(0)

    @property
    def known(self) -> bool:
        return len(self.point) > 0

    @property
    def feasible(self) -> bool:
        return self.known and not self.violations.any()

    def see(self, points: Array, values: Array, sign: float, constraints: Array) -> tuple[float, float]:
        """Update with a generation, of which ``sign * values`` is minimized.

        Returns:
            The row of the history: the value of the generation's best point, NaN if no number is usable, and
            the mean of the usable values.
        """
        known = values[usable(values)]
        mean = float(known.mean()) if len(known) else math.nan
        losses = sign * values
        beyond = np.where(usable(losses), excess(constraints), np.nan)
        if np.isnan(beyond).all():
            return math.nan, mean
        first = int(np.lexsort((losses, beyond))[0])
        loss = float(losses[first])
        before = self.violations.sum() if self.known else math.inf
        if (beyond[first], loss) < (before, self.loss):
            self.point, self.loss = points[first].copy(), loss
            self.violations = np.maximum(constraints[first], 0)
        return sign * loss, mean


def _lagrangian_for(strategy: Strategy) -> AugmentedLagrangian:
    if strategy.compares_generations:
        raise InputError(
            f"constraints do not work with {type(strategy).__name__}, which compares fitness across "
            "generations while multipliers change; use another strategy, such as cma-es or cr-fm-nes"
        )
    return AugmentedLagrangian(strategy.dimension)


class ConstrainedSearch(Search):
    """A search that minimizes an augmented Lagrangian and returns the best feasible point."""

    def __init__(self, *arguments: Any) -> None:
        self._feasible = _Best()
        super().__init__(*arguments)

    def _begin(self, start: Start) -> None:
        super()._begin(start)
        self._rules.drifting = True
        self._lagrangian = _lagrangian_for(self._strategy)

    def tell(self, values: Values) -> None:
        self._count(values)
        self._values = values
        merits = self._lagrangian.merits(self._sign * values.numbers, values.constraints)
        self._end(self._learn(self._sign * merits))

    def _remember(self, values: Array) -> None:
        own, point = self._values, self._feasible.point
        self._history.extend(self._feasible.see(self._points, own.numbers, self._sign, own.constraints))
        if self._feasible.point is not point:
            loss = self._feasible.loss if self._feasible.feasible else math.inf
            self._set_best(self._feasible.point, loss)

    def _record(self, values: Array, scales: tuple[float, float]) -> None:
        super()._record(self._values.numbers, scales)

    def found(self) -> Optimum:
        found, best = super().found(), self._feasible
        loss = self._sign * best.loss if best.known else math.nan
        return dataclasses.replace(
            found, best_fitness=loss, feasible=best.feasible, violations=best.violations.copy()
        )


@dataclasses.dataclass(frozen=True)
class ConstrainedResult(Result):
    """Result of :class:`Constrained`.

    ``best`` is the best feasible member so far, or the least violated one if ``feasible`` is False.
    ``violations`` are its constraint violations, shape (constraints,).
    """

    feasible: bool
    violations: Array


class Constrained:
    """Ask-and-tell wrapper that adds constraints to any strategy.

    The strategy optimizes an augmented Lagrangian, to which its own ``result`` refers. Atamna, Auger and
    Hansen 2017, "Linearly convergent evolution strategies via augmented Lagrangian constraint handling".

    Args:
        strategy: the wrapped strategy.

    Raises:
        InputError: the strategy compares fitness across generations.

    Examples:
        >>> import torch
        >>> from escalade.strategies import CMAES
        >>> es = Constrained(CMAES(torch.ones(2, dtype=torch.float64), sigma=0.5, direction="minimize"))
        >>> for _ in range(150):
        ...     x = es.ask()
        ...     es.tell((x**2).sum(dim=1), 1 - x.sum(dim=1, keepdim=True))  # x[0] + x[1] >= 1
        >>> [round(float(number), 3) for number in es.result.best], es.result.feasible
        ([0.5, 0.5], True)
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self._sign = 1.0 if strategy.direction == "minimize" else -1.0
        self._lagrangian = _lagrangian_for(strategy)
        self._best = _Best()
        self._history = array("d")
        self._members: Tensor | None = None

    def ask(self) -> Tensor:
        """Return the members of this generation, shape (population, dimension)."""
        self._members = self.strategy.ask()
        return self._members.clone()

    def tell(self, fitness: ArrayLike | Tensor, violations: ArrayLike | Tensor) -> None:
        """Update the strategy with the fitness of this generation.

        Args:
            fitness: fitness of the members from :meth:`ask`, shape (population,).
            violations: constraint values, shape (population, constraints). A constraint is met if its value
                is at most 0; values inside should become more negative with the distance. An equality h = 0
                is two constraints, h and -h.

        Raises:
            InputError: the shapes do not fit, or :meth:`ask` was not called.
        """
        if self._members is None:
            raise InputError("tell() without members; call ask() and then tell() once in every generation")
        values, constraints = as_float64(fitness), as_float64(violations)
        size = len(self._members)
        if values.shape != (size,) or constraints.ndim != 2 or len(constraints) != size:
            raise InputError(
                f"fitness must have shape ({size},) and violations ({size}, constraints), not {values.shape} "
                f"and {constraints.shape}"
            )
        self.strategy.tell(self._sign * self._lagrangian.merits(self._sign * values, constraints))
        points = self._members.double().numpy()
        self._history.extend(self._best.see(points, values, self._sign, constraints))
        self._members = None

    @property
    def result(self) -> ConstrainedResult:
        """The best member, and the history of the fitness passed to :meth:`tell`."""
        best, center = self._best, self.strategy.center.clone()
        return ConstrainedResult(
            best=torch.from_numpy(best.point).to(center) if best.known else center,
            best_fitness=self._sign * best.loss if best.known else math.nan,
            center=center,
            history=rows_of(self._history),
            feasible=best.feasible,
            violations=best.violations.copy(),
        )

    def state_dict(self) -> State:
        """Return the state for :meth:`load_state_dict`. Continuing from it is bit-identical."""
        own = {_PREFIX + name: copied(getattr(part, name)) for part, name in self._adapted()}
        history = torch.from_numpy(rows_of(self._history))
        return {**self.strategy.state_dict(), **own, _PREFIX + "history": history}

    def load_state_dict(self, state: State) -> None:
        """Load the state of a search with the same arguments.

        Raises:
            InputError: the state belongs to a different kind of search.
        """
        names = [_PREFIX + name for name in (*(name for _, name in self._adapted()), "history")]
        if missing := set(names) - state.keys():
            raise InputError(f"the state has no {min(missing)}; it is from a search without constraints")
        self.strategy.load_state_dict(state)
        for part, name in self._adapted():
            setattr(part, name, restore(state[_PREFIX + name], getattr(part, name)))
        self._history = array("d", torch.as_tensor(state[_PREFIX + "history"]).flatten().tolist())
        self._members = None

    def _adapted(self) -> list[tuple[Any, str]]:
        return [(part, name) for part in (self._lagrangian, self._best) for name in part.adapted]
