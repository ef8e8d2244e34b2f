"""Searches under constraints: by :func:`escalade.optimize`, and by ask and tell around any strategy."""

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
    """The best feasible point so far, or until there is one, the least violated point."""

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
        """Compare with a generation, whose ``sign * values`` are to be small.

        Returns:
            The generation's row of the history: the value of its own best point, NaN if no number is usable,
            and the mean of the usable values.
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
            f"constraints: {type(strategy).__name__} compares fitness with that of earlier generations, but "
            "multipliers change in between: use another strategy, such as cma-es or cr-fm-nes"
        )
    return AugmentedLagrangian(strategy.dimension)


class ConstrainedSearch(Search):
    """A search that minimises an augmented Lagrangian, and whose answer is the best feasible point."""

    def __init__(self, *arguments: Any) -> None:
        self._under = _Best()
        super().__init__(*arguments)

    def _begin(self, start: Start) -> None:
        super()._begin(start)
        self._rules.drifting = True
        self._lagrangian = _lagrangian_for(self._strategy)

    def tell(self, values: Values) -> None:
        self._count(values)
        self._told = values
        merits = self._lagrangian.merits(self._sign * values.numbers, values.constraints)
        self._end(self._learn(self._sign * merits))

    def _remember(self, values: Array) -> None:
        told, point = self._told, self._under.point
        self._history.extend(self._under.see(self._points, told.numbers, self._sign, told.constraints))
        if self._under.point is not point:
            self._lead(self._under.point, self._under.loss if self._under.feasible else math.inf)

    def _record(self, values: Array, scales: tuple[float, float]) -> None:
        super()._record(self._told.numbers, scales)

    def found(self) -> Optimum:
        found, best = super().found(), self._under
        loss = self._sign * best.loss if best.known else math.nan
        return dataclasses.replace(
            found, best_fitness=loss, feasible=best.feasible, violations=best.violations.copy()
        )


@dataclasses.dataclass(frozen=True)
class ConstrainedResult(Result):
    """The state of a search by ask and tell under constraints.

    ``best`` is the best ``feasible`` member so far, or the least violated one, and ``violations`` holds by
    how much it violates each constraint, shape (constraints,).
    """

    feasible: bool
    violations: Array


class Constrained:
    """Ask and tell under constraints, around any strategy.

    The strategy minimises or maximises an augmented Lagrangian; its own ``result`` holds that. Atamna, Auger
    and Hansen 2017, "Linearly convergent evolution strategies via augmented Lagrangian constraint handling".

    Args:
        strategy: what searches.

    Raises:
        InputError: the strategy compares fitness with that of earlier generations.

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
        """The generation's members, shape (population, dimension)."""
        self._members = self.strategy.ask()
        return self._members.clone()

    def tell(self, fitness: ArrayLike | Tensor, violations: ArrayLike | Tensor) -> None:
        """Move on to the next generation.

        Args:
            fitness: of the members just asked for, shape (population,).
            violations: numbers that are at most 0 if a constraint is met, and the more negative the
                farther from it, shape (population, constraints). An equality h = 0 is two of them, h and -h.

        Raises:
            InputError: the shapes do not fit, or members were not asked for.
        """
        if self._members is None:
            raise InputError("tell without members: call ask() in every generation, then tell() once")
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
        """The best member, and the history of values as they were told."""
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
        """Everything that :meth:`load_state_dict` needs to go on bit for bit."""
        own = {_PREFIX + name: copied(getattr(part, name)) for part, name in self._adapted()}
        history = torch.from_numpy(rows_of(self._history))
        return {**self.strategy.state_dict(), **own, _PREFIX + "history": history}

    def load_state_dict(self, state: State) -> None:
        """Take over the state of a search that was built with the same arguments.

        Raises:
            InputError: it is another's.
        """
        names = [_PREFIX + name for name in (*(name for _, name in self._adapted()), "history")]
        if missing := set(names) - state.keys():
            raise InputError(f"the state holds no {min(missing)}: it is that of a search without constraints")
        self.strategy.load_state_dict(state)
        for part, name in self._adapted():
            setattr(part, name, restore(state[_PREFIX + name], getattr(part, name)))
        self._history = array("d", torch.as_tensor(state[_PREFIX + "history"]).flatten().tolist())
        self._members = None

    def _adapted(self) -> list[tuple[Any, str]]:
        return [(part, name) for part in (self._lagrangian, self._best) for name in part.adapted]
