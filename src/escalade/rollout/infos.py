"""Means of what episodes' last infos hold."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from escalade.envs import Environment
from escalade.envs.environment import first_info
from escalade.envs.wrapping import entries
from escalade.errors import InputError


def mean_known(values: NDArray[np.float64]) -> float | None:
    """The mean of the numbers among ``values``, shape (n,); None where there is none."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def check_known(
    environment: Environment, infos: NDArray[np.float64], asked: Collection[str] | None = None
) -> None:
    """Refuse a key that no episode's last info had; ``infos`` has the shape (episodes, keys).

    Args:
        environment: whose ``info_keys`` they are.
        infos: the numbers.
        asked: the keys to check; None for all.

    Raises:
        InputError: names the key, and what an info of the environment has.
    """
    for key, values in zip(environment.info_keys, infos.T, strict=True):
        if (asked is None or key in asked) and mean_known(values) is None:
            raise InputError(
                f"`{environment.asked_by(key)}` {key}: no episode's last info has a number of that name "
                f"(that of a first step: {entries(first_info(environment))})"
            )
