"""A generation as callbacks see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.errors import InputError
from escalade.recorders import Row


@dataclass(frozen=True)
class View:
    """A generation as callbacks see it. What they do to it does not change the run."""

    row: Row
    _parameters: Tensor
    """Parameters of :attr:`center`, on their device: a view that is kept holds a copy there."""
    best_return: float | None
    """The best so far, of evaluations in ``train``, of members too in ``evolve``; None before the first."""
    module: Callable[[], nn.Module]
    """Makes a module with these parameters, a Policy in ``train``; it is the caller's own."""
    behaviours: NDArray[np.float32] | None = None
    """Mean behaviours of the generation's members, shape (population, size), read-only; None where nobody
    asked for any."""

    @cached_property
    def center(self) -> NDArray[np.float32]:
        """The unperturbed parameters after the generation, shape (dimension,), read-only."""
        array = np.asarray(self._parameters.numpy(force=True))
        array.flags.writeable = False
        return array


Callback = Callable[[View], bool | Literal["stopped"] | None]
"""Called after every generation; True stops the run by ``callback``, and "stopped" by ``stopped``."""


def answer_of(given: Any) -> bool | str:
    """The answer of a callback, as text or as a truth value.

    Raises:
        InputError: it is neither, such as an array.
    """
    try:
        return given if isinstance(given, str) else bool(given)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"a callback returned a {type(given).__name__}: let it return True to stop, or else nothing"
        ) from None
