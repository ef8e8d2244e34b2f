"""Base class of all strategies: ask, tell, and a state that can be saved."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal, Self, TypedDict

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.linalg import vector_norm

from escalade.errors import Diverged, InputError
from escalade.perturbation import LowRank, NoiseSource, Population, Stream, seeds, usual_noise, write_all
from escalade.perturbation.device import device_of
from escalade.strategies.ranking import default_population
from escalade.strategies.result import Record, Result
from escalade.strategies.schedules import Schedule
from escalade.strategies.shaping import finite_fitness
from escalade.strategies.tensors import Start, State, adapted_by, center_before, copied, first_center, restore
from escalade.support.arrays import as_float64
from escalade.support.generators import generators_seeded
from escalade.support.keywords import check_keywords, signature_of
from escalade.support.numbers import population_number, seed_number

Direction = Literal["maximize", "minimize"]
Fitness = NDArray[np.float64]


class Common(TypedDict, total=False):
    """Keywords that every strategy passes to :class:`Strategy`, which documents them."""

    seed: int
    direction: Direction
    perturbation: NoiseSource | None


class Strategy(ABC):
    """Ask-and-tell interface of all strategies: a search distribution that moves towards better fitness.

    A generation is a pure function of (state, seed): no random state is carried between calls. While
    :meth:`members`, :meth:`update` and :meth:`remember` of a user's subclass run, the global generators of
    ``random``, ``numpy.random`` and ``torch`` are seeded with seed and generation; afterwards their previous
    states are restored.

    Args:
        x0: initial center, shape (dimension,), a tensor or anything torch can convert. If it is float64,
            members and center are float64; otherwise they are float32.
        population: members per generation; None means :meth:`usual_population`.
        seed: the same seed produces the same members.
        direction: ``maximize`` or ``minimize`` the fitness.
        perturbation: source of the noise; None creates one from ``seed``.

    Raises:
        InputError: an argument is invalid or unknown; the message names it.
    """

    antithetic: bool = False
    """True if members 2k and 2k + 1 are a mirrored pair: the same noise, added and subtracted."""

    smallest: ClassVar[int] = 2
    """Smallest allowed population."""

    grows: ClassVar[bool] = True
    """True if :meth:`update` accepts generations whose size differs from the first one's."""

    on_device: ClassVar[bool] = False
    """True if the strategy works with full noise of a device; if :attr:`low_rank`, it does too."""

    low_rank: ClassVar[bool] = False
    """True if the strategy works with low-rank and device noise: it has one scale for all parameters."""

    compares_generations: ClassVar[bool] = False
    """True if updates compare fitness across generations; ranks within one generation then do not suffice."""

    draws_once: ClassVar[bool] = False
    """True if a generation's noise is drawn as a whole: for few parameters it then needs no noise table."""

    elitist: ClassVar[bool] = False
    """True if the best members survive unchanged."""

    adapted: ClassVar[tuple[str, ...]] = ()
    """Names of the arrays, tensors and numbers that updates replace (never modify); saved with the center."""

    lr_schedule: Schedule | None = None
    """Step size of each generation, if the strategy has one."""
    sigma_schedule: Schedule
    """Noise scale of each generation, unless the class overrides :attr:`sigma`."""

    _draws_globally: ClassVar[bool] = False  # True for classes outside this package

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__signature__ = signature_of(cls)  # type: ignore[attr-defined] # what `help` and editors show
        cls._draws_globally = not cls.__module__.startswith("escalade.")

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """Raise InputError for an unknown keyword, suggesting the closest known one."""
        check_keywords(cls.__name__, cls, keywords)
        return super().__new__(cls)

    def __init__(
        self,
        x0: Start,
        population: int | None,
        *,
        seed: int = 0,
        direction: Direction = "maximize",
        perturbation: NoiseSource | None = None,
    ) -> None:
        start, device = first_center(x0), device_of(perturbation)
        if population is None:
            population = self.usual_population(len(start))
        if direction not in ("maximize", "minimize"):
            raise InputError(f"direction {direction!r} must be 'maximize' or 'minimize'")
        if isinstance(perturbation, LowRank):
            self._check_low_rank(perturbation, len(start))
        if device is not None:
            start = start.to(device, torch.float32)
        self.center: Tensor = start  # updates write to it in place; es.result.center is a copy
        self.first_population = self.population_size = self._size(population)
        self.seed = seed_number(seed)
        self.direction = direction
        self.generation = 0
        self.update_ratio = 0.0
        self.nonfinite: list[int] = []
        self._perturbation = perturbation
        self._sampled: Population | None = None  # this generation's members, after the first sample()
        self._asked = False  # True after ask() wrote them out
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._record = Record(self._sign)

    @staticmethod
    def usual_population(dimension: int) -> int:
        """Return the default population for ``dimension`` parameters."""
        return default_population(dimension)

    def _size(self, population: int) -> int:
        population = population_number(population, self.smallest)
        if self.antithetic and population % 2:
            raise InputError(
                f"population {population} is odd, but members come in mirrored pairs; use {population + 1}"
            )
        return population

    def _check_low_rank(self, source: LowRank, dimension: int) -> None:
        full = not source.rank  # on a device
        if not (self.low_rank or (full and self.on_device)):
            what = "device; remove it" if full else "low-rank noise; remove perturbation"
            others = "OpenAIES, PGPE, SNES or SepCMAES" if full else "OpenAIES or ARS"
            raise InputError(f"{type(self).__name__} does not work with {what}, or use {others}")
        if source.dimension != dimension:
            wanted = f"{source.dimension} parameters, but x0 has {dimension}"
            raise InputError(f"the low-rank noise is for {wanted}")

    def resize(self, population: int) -> None:
        """Change the number of members of the current generation only.

        Member k stays the same. The next generation has the initial population again.

        Raises:
            InputError: :attr:`grows` is False, or ``population`` is too small, or odd while members come in
                mirrored pairs.
        """
        population = self._size(population)
        if population != self.population_size:
            if not self.grows:
                raise InputError(f"{type(self).__name__} needs the same population in every generation")
            self.population_size = population
            self._sampled = None

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return self.center.numel()

    @property
    def perturbation(self) -> NoiseSource:
        """Source of the members' noise, created on first use."""
        if self._perturbation is None:
            self._perturbation = usual_noise(self.seed, self.dimension, once=self.draws_once)
        return self._perturbation

    @property
    def sigma(self) -> float:
        """Scale of the noise in this generation, or its mean if every parameter has its own."""
        return self.sigma_schedule(self.generation)

    @property
    def scale(self) -> float | NDArray[np.floating]:
        """Standard deviation of the members: a number, or one per parameter, shape (dimension,)."""
        return self.sigma

    @property
    def condition(self) -> float | None:
        """Ratio of the largest to the smallest variance of the search distribution along its axes.

        None if no covariance is adapted. Searches that adapt one also stop when they stagnate.
        """
        return None

    @property
    def lr(self) -> float:
        """Step size in this generation; NaN for strategies that have none."""
        return math.nan if self.lr_schedule is None else self.lr_schedule(self.generation)

    @abstractmethod
    def members(self) -> Population:
        """Create this generation's members. Subclasses implement this."""

    def sample(self) -> Population:
        """Return this generation's members for :meth:`tell`, as addresses of noise if possible."""
        if self._sampled is None:
            with self._generators(0):
                self._sampled = self.members()
        return self._sampled

    def _generators(self, place: int) -> AbstractContextManager[None]:
        # In a user's class, global random numbers then agree in every process and on resume.
        if not self._draws_globally:
            return nullcontext()
        return generators_seeded(int(seeds(self.seed, Stream.STRATEGY, self.generation, place)))

    def ask(self) -> Tensor:
        """Return this generation's members, shape (population, dimension)."""
        self._asked = True
        return torch.from_numpy(write_all(self.sample()))

    def tell(self, fitness: ArrayLike | Tensor) -> None:
        """Update the search distribution with the fitness of the current members, and start a new generation.

        NaN, infinity and numbers whose absolute value exceeds 1e30 count as the worst of the other values.
        ``nonfinite`` then lists their members.

        Args:
            fitness: shape (population,).

        Raises:
            InputError: ``fitness`` is not numeric or has another shape, :meth:`ask` was not called first, or
                the center or sigma would become infinite; the center then stays unchanged.
        """
        if self._sampled is None:
            raise InputError(
                "tell() without members; call ask() (or sample()) in every generation, then tell() once"
            )
        array, shape = as_float64(fitness), (self.population_size,)
        if array.shape != shape:
            raise InputError(f"fitness must have shape {shape}, one number per member, not {array.shape}")
        cleaned, self.nonfinite = finite_fitness(self._sign * array)
        before, sigma = center_before(self._sampled, self.center), self.sigma
        if not (cleaned == cleaned[0]).all():  # equal fitness carries no information
            with self._generators(1):
                self.update(cleaned)
        elif len(self.nonfinite) < len(cleaned):
            with self._generators(2):
                self.remember(cleaned)
        norm, moved = float(vector_norm(before)), float(vector_norm(self.center - before))
        if overflow := self._overflow(moved, sigma):
            self.center.copy_(before)
            raise Diverged(f"generation {self.generation + 1} takes {overflow}")
        self.update_ratio = moved / norm if norm > 0 else 0.0
        # Last, so that tell() can be called again after update() raised an error.
        if self._asked:
            self._record.add(self._sampled, cleaned, self.nonfinite)
        self.generation += 1
        self.population_size = self.first_population
        self._sampled, self._asked = None, False

    def _overflow(self, moved: float, sigma: float) -> str:
        """Describe the quantity that an update of length ``moved`` from ``sigma`` made infinite, if any."""
        if not math.isfinite(moved) and not bool(self.center.isfinite().all()):
            lr = "" if math.isnan(self.lr) else f"lr (now {self.lr:g}) or "
            largest = f"the center beyond the largest {self.center.dtype}"
            return f"{largest}; use a smaller {lr}sigma (now {self.sigma:g})"
        if math.isfinite(sigma) and not math.isfinite(self.sigma):
            return "sigma beyond the largest number; use smaller rates"
        return ""

    @property
    def result(self) -> Result:
        """Best member, center and history of the generations from :meth:`ask`.

        Members that were only sampled as addresses (:meth:`sample`) are not recorded.
        """
        best, fitness = self._record.best or (self.center, math.nan)
        return Result(best.clone(), fitness, self.center.clone(), self._record.history)

    def remember(self, fitness: Fitness) -> None:  # noqa: B027 - most keep no fitness
        """Handle a generation of equal fitness, which has no :meth:`update`. Subclasses may override this."""

    def narrow(self, factors: NDArray[np.float64]) -> None:  # noqa: B027 - most sigmas never grow
        """Multiply the standard deviation of each parameter by a factor.

        Strategies whose sigma is fixed or scheduled ignore this. Subclasses may override it.

        Args:
            factors: shape (dimension,), above 0. Only integer parameters may have factors above 1.
        """

    @abstractmethod
    def update(self, fitness: Fitness) -> None:
        """Update the search distribution.

        Subclasses implement this.

        Args:
            fitness: float64, shape (population,); finite, not all equal, larger is better.
        """

    def state_dict(self) -> State:
        """Return the state from which :meth:`load_state_dict` continues with exactly the same numbers."""
        state: State = {
            "center": self.center.clone(),
            "generation": self.generation,
            "update_ratio": self.update_ratio,
            **{name: copied(getattr(self, name)) for name in adapted_by(type(self))},
            **self._record.state(),
        }
        return state

    def load_state_dict(self, state: State) -> None:
        """Load the state of a strategy that was created with the same arguments.

        Raises:
            InputError: the state does not fit this strategy; nothing is loaded.
        """
        names = ("center", "generation", "update_ratio", *adapted_by(type(self)))
        if missing := set(names) - state.keys():
            raise InputError(f"the saved state has no {min(missing)}: it is from a different strategy")
        if torch.as_tensor(state["center"]).shape != self.center.shape:
            raise InputError(f"the saved center does not have this strategy's {self.dimension} parameters")
        self.center.copy_(torch.as_tensor(state["center"]))
        self.generation = int(state["generation"])
        self.population_size = self.first_population
        self._sampled, self._asked = None, False
        self.update_ratio = float(state["update_ratio"])
        for name in adapted_by(type(self)):
            setattr(self, name, restore(state[name], getattr(self, name)))
        self._record.load(state)


StrategyFactory = Callable[..., Strategy]  # called as factory(x0, population=..., sigma=..., ...)
