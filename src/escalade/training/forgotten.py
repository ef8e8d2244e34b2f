"""A check that a strategy of the user's own saves all of its state: made once, on copies."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

from escalade.errors import one_line
from escalade.perturbation import write_all
from escalade.strategies import Strategy
from escalade.strategies.centers import Centers
from escalade.strategies.saving import load_strategy, save_strategy

_GENERATIONS = 2  # what only the update uses, such as a momentum, shows in the members after it


def forgotten(strategy: Strategy) -> str | None:
    """A line that names what ``state_dict`` leaves out; None where there is nothing, or it is not a user's.

    A new strategy is given the saved state. It must propose the same members as a copy of ``strategy``, now
    and after both were told the same fitness. ``strategy`` itself is not touched.
    """
    if isinstance(strategy, Centers):
        strategy = strategy.current
    if strategy.remake is None:
        return None
    name = type(strategy).__name__
    try:
        same = {id(one): one for one in (strategy._perturbation, strategy.remake) if one is not None}
        live, fresh = copy.deepcopy(strategy, same), strategy.remake()
        load_strategy(fresh, *save_strategy(strategy))
        left_out = [key for key, value in vars(live).items() if not _alike(value, vars(fresh).get(key))]
        if all(_one_generation(live, fresh) for _ in range(_GENERATIONS)):
            return None
    except Exception as problem:  # noqa: BLE001 - whatever the user's code raises: the run itself does not need this
        said = one_line(problem)
        return f"the state of {name} cannot be saved and loaded, so a resumed run will not go on: {said}"
    what = ", ".join(key for key in left_out if key != "nonfinite") or "something"
    return (
        f"{name}.state_dict forgets {what}: a strategy that loads it proposes other members, so a resumed "
        "run is another run; list it in adapted, or add it to state_dict and load_state_dict"
    )


def _one_generation(live: Strategy, fresh: Strategy) -> bool:
    """Ask both and tell both; whether they proposed the same."""
    one, other = live.sample(), fresh.sample()
    for member in range(one.size):
        if not np.array_equal(write_all(one, [member]), write_all(other, [member])):
            return False
    fitness = np.linspace(-1.0, 1.0, one.size)
    live.tell(fitness)
    fresh.tell(fitness)
    return torch.equal(live.center, fresh.center)


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two attributes are the same, as far as plain values can tell."""
    if isinstance(one, torch.Tensor | np.ndarray):
        return type(one) is type(other) and np.array_equal(np.asarray(one), np.asarray(other))
    if isinstance(one, bool | int | float | str | None):
        return bool(one == other)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(_alike, one, other))
    return True
