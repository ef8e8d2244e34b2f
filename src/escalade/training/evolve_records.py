"""What a run of :func:`escalade.evolve` tells: a row each generation, and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray
from torch import nn

from escalade.policies.layout import Layout, M, copy_module


@dataclass(frozen=True)
class Generation:
    """One generation. Fitness has the user's own sign: ``best`` is the lowest when minimising."""

    generation: int
    """1 for the first."""
    evaluations: int
    """Calls of fitness so far (parameter sets, when batched), tests included."""
    seconds: float
    """Since the run began, runs it was resumed from included."""
    best: float
    mean: float
    worst: float
    std: float
    score: float | None
    """Fitness of the unperturbed module, before this generation's step; None when it was not tested."""
    sigma: float
    lr: float
    """NaN for strategies without a step size."""
    update_ratio: float
    """Length of the step over that of the centre; 0 in the generation that met the goal: it makes none."""
    nonfinite: int
    """Members whose fitness was NaN or infinite; they count as the worst, and not in the columns above."""

    def __str__(self) -> str:
        tested = "" if self.score is None else f"   unperturbed {self.score:.6g}"
        return (
            f"generation {self.generation}   best {self.best:.6g}   mean {self.mean:.6g}{tested}"
            f"   sigma {self.sigma:.4g}   {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class View:
    """A generation as callbacks see it; nothing in it can move the run."""

    row: Generation
    center: NDArray[np.float32]
    """The unperturbed parameters after the generation, shape (dimension,), read-only."""
    best_fitness: float
    """The best of any member, or of the unperturbed module, so far."""
    module: Callable[[], nn.Module]
    """Makes a module with the centre's parameters; it is the caller's own."""


@dataclass(frozen=True)
class Evolution(Generic[M]):
    """What :func:`escalade.evolve` returns."""

    module: M
    """The module that was passed in, now with the centre's parameters."""
    score: float
    """Fitness of that module; after an interruption that of its last test, NaN if there was none."""
    center: NDArray[np.float32]
    """The final centre, shape (dimension,), in the order of ``named_parameters()``."""
    best: NDArray[np.float32]
    """Parameters of the best member, or tested centre, of the whole run, shape (dimension,)."""
    best_fitness: float
    """What they gave. Where fitness is noisy this is partly luck, and ``score`` the fairer number."""
    history: tuple[Generation, ...]
    generations: int
    """How often the centre has moved."""
    stop_reason: str
    """``generations``, ``seconds``, ``goal``, ``callback`` or ``interrupted``."""

    def best_module(self) -> M:
        """A new module with the parameters of the best member."""
        module = copy_module(self.module)
        Layout(module).writer(module)(self.best)
        return module
