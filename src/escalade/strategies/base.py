"""The base of all strategies: ask, tell, and a state that can be saved."""

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
from escalade.perturbation import (
    LowRank,
    NoiseSource,
    Population,
    Stream,
    seeds,
    usual_noise,
    write_all,
)
from escalade.perturbation.device import device_of
from escalade.strategies.ranking import default_population
from escalade.strategies.result import Record, Result
from escalade.strategies.schedules import Schedule
from escalade.strategies.shaping import finite_fitness
from escalade.strategies.tensors import Start, State, adapted_by, as_kept, center_before, copied, first_center
from escalade.support.arrays import as_float64
from escalade.support.generators import generators_seeded
from escalade.support.keywords import check_keywords, signature_of
from escalade.support.numbers import population_number, seed_number

Direction = Literal["maximize", "minimize"]
Fitness = NDArray[np.float64]


class Common(TypedDict, total=False):
    """The keywords that every strategy hands on to :class:`Strategy`, which describes them."""

    seed: int
    direction: Direction
    perturbation: NoiseSource | None


class Strategy(ABC):
    """A search distribution that moves towards higher fitness.

    A generation is a pure function of (state, seed): nothing random is kept between calls. Around
    :meth:`members`, :meth:`update` and :meth:`remember` of a user's subclass, the global generators of
    ``random``, ``numpy.random`` and ``torch`` are seeded with seed and generation, and then put back.

    Args:
        x0: the first centre, shape (dimension,), a tensor or anything torch can read. Where it is
            float64, members and centre are float64; otherwise float32.
        population: members a generation; None means :meth:`usual_population`.
        seed: the same seed gives the same members.
        direction: what the fitness is to become, ``maximize`` or ``minimize``.
        perturbation: the source of the noise; made from ``seed`` when not given.

    Raises:
        InputError: an argument is impossible or unknown; the message names it.
    """

    antithetic: bool = False
    """True if members 2k and 2k + 1 are a mirrored pair: the same noise, added and subtracted."""

    smallest: ClassVar[int] = 2
    """The smallest population that it can work with."""

    grows: ClassVar[bool] = True
    """True where :meth:`update` can take a generation of another size than the first."""

    low_rank: ClassVar[bool] = False
    """True where noise of low rank, or of a device, will do: it has one scale for all parameters."""

    compares_generations: ClassVar[bool] = False
    """True where an update compares fitness with that of generations before: ranks within one will not do."""

    draws_once: ClassVar[bool] = False
    """True if members take a generation's noise as a whole: for few parameters it is made without a table."""

    elitist: ClassVar[bool] = False
    """True where the best members live on unchanged."""

    adapted: ClassVar[tuple[str, ...]] = ()
    """Arrays, tensors and numbers that updates replace, and never write to: saved with the centre."""

    lr_schedule: Schedule | None = None
    """The step size of each generation, if there is one."""
    sigma_schedule: Schedule
    """The noise scale of each generation, if the class has no :attr:`sigma` of its own."""

    _draws_globally: ClassVar[bool] = False  # classes of this package don't

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__signature__ = signature_of(cls)  # type: ignore[attr-defined] # what `help` and editors show
        cls._draws_globally = not cls.__module__.startswith("escalade.")

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """Refuse an argument that the class does not have, in one line that names the nearest."""
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
        self.center: Tensor = start  # updates write to it; a copy to keep is es.result.center
        self.first_population = self.population_size = self._size(population)
        self.seed = seed_number(seed)
        self.direction = direction
        self.generation = 0
        self.update_ratio = 0.0
        self.nonfinite: list[int] = []
        self._perturbation = perturbation
        self._sampled: Population | None = None  # this generation's members, once they were given out
        self._asked = False  # True once they were written out
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._record = Record(self._sign)

    @staticmethod
    def usual_population(dimension: int) -> int:
        """The number of members if none is given."""
        return default_population(dimension)

    def _size(self, population: int) -> int:
        population = population_number(population, self.smallest)
        if self.antithetic and population % 2:
            raise InputError(
                f"population {population} is odd, but members come in mirrored pairs: use {population + 1}"
            )
        return population

    def _check_low_rank(self, source: LowRank, dimension: int) -> None:
        device = device_of(source)
        if not self.low_rank:
            what = "device: leave it out" if device else "low-rank noise: leave perturbation out"
            raise InputError(f"{type(self).__name__} does not work with {what}, or use OpenAIES or ARS")
        if source.dimension != dimension:
            raise InputError(
                f"the low-rank noise is for {source.dimension} parameters, but x0 has {dimension}"
            )

    def resize(self, population: int) -> None:
        """Give this generation another number of members: even, where they come in mirrored pairs.

        Member k stays the same. Only this generation has that size; :meth:`tell` ends it.

        Raises:
            InputError: :attr:`grows` is False, or the strategy cannot begin with such a population either.
        """
        population = self._size(population)
        if population != self.population_size:
            if not self.grows:
                raise InputError(f"generations of {type(self).__name__} are all of one size")
            self.population_size = population
            self._sampled = None

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return self.center.numel()

    @property
    def perturbation(self) -> NoiseSource:
        """The source of the noise that members are made of; made when first needed."""
        if self._perturbation is None:
            self._perturbation = usual_noise(self.seed, self.dimension, once=self.draws_once)
        return self._perturbation

    @property
    def sigma(self) -> float:
        """Scale of the noise in this generation (its mean, where every parameter has its own)."""
        return self.sigma_schedule(self.generation)

    @property
    def scale(self) -> float | NDArray[np.floating]:
        """Standard deviation of the members: a number, or one per parameter, shape (dimension,)."""
        return self.sigma

    @property
    def condition(self) -> float | None:
        """The largest variance of the search distribution over the smallest, along its axes.

        None where no covariance is adapted; searches that adapt one also stop when they stagnate.
        """
        return None

    @property
    def lr(self) -> float:
        """Step size in this generation; NaN for strategies that have none."""
        return math.nan if self.lr_schedule is None else self.lr_schedule(self.generation)

    @abstractmethod
    def members(self) -> Population:
        """This generation's members, made anew. For subclasses."""

    def sample(self) -> Population:
        """The generation's members, as addresses where the strategy can; :meth:`tell` takes their fitness."""
        if self._sampled is None:
            with self._generators(0):
                self._sampled = self.members()
        return self._sampled

    def _generators(self, place: int) -> AbstractContextManager[None]:
        """Seed the global generators for one method of a user's class, in every process and on resume."""
        if not self._draws_globally:
            return nullcontext()
        return generators_seeded(int(seeds(self.seed, Stream.STRATEGY, self.generation, place)))

    def ask(self) -> Tensor:
        """The generation's members written out, shape (population, dimension)."""
        self._asked = True
        return torch.from_numpy(write_all(self.sample()))

    def tell(self, fitness: ArrayLike | Tensor) -> None:
        """Move on to the next generation, given the fitness of the members just asked for.

        ``fitness`` has shape (population,). NaN, infinity and what lies beyond 1e30, either way, count as
        the worst of the others; ``nonfinite`` then lists the members that gave them.

        Raises:
            InputError: it does not hold such numbers, members were not asked for, or the centre or sigma
                would not be finite any more; the centre then stays.
        """
        if self._sampled is None:
            raise InputError(
                "tell without members: call ask() (or sample()) in every generation, then tell() once"
            )
        array, shape = as_float64(fitness), (self.population_size,)
        if array.shape != shape:
            raise InputError(f"fitness must have shape {shape}, one number a member, not {array.shape}")
        cleaned, self.nonfinite = finite_fitness(self._sign * array)
        before, sigma = center_before(self._sampled, self.center), self.sigma
        if not (cleaned == cleaned[0]).all():  # else there is nothing to learn from
            with self._generators(1):
                self.update(cleaned)
        elif len(self.nonfinite) < len(cleaned):
            with self._generators(2):
                self.remember(cleaned)
        norm, moved = float(vector_norm(before)), float(vector_norm(self.center - before))
        if beyond := self._beyond(moved, sigma):
            self.center.copy_(before)
            raise Diverged(f"generation {self.generation + 1} takes {beyond}")
        self.update_ratio = moved / norm if norm > 0 else 0.0
        # Last, so that tell can be called again after update raised.
        if self._asked:
            self._record.add(self._sampled, cleaned, self.nonfinite)
        self.generation += 1
        self.population_size = self.first_population
        self._sampled, self._asked = None, False

    def _beyond(self, moved: float, sigma: float) -> str:
        """Words for what an update by ``moved``, from ``sigma``, made infinite; empty where nothing is."""
        if not math.isfinite(moved) and not bool(self.center.isfinite().all()):
            lr = "" if math.isnan(self.lr) else f"lr (now {self.lr:g}) or "
            largest = f"the centre beyond the largest {self.center.dtype}"
            return f"{largest}: use a smaller {lr}sigma (now {self.sigma:g})"
        if math.isfinite(sigma) and not math.isfinite(self.sigma):
            return "sigma beyond the largest number: use smaller rates"
        return ""

    @property
    def result(self) -> Result:
        """Best member, centre and history of what :meth:`ask` gave out.

        Members that only travelled as addresses (:meth:`sample`) are not recorded.
        """
        best, fitness = self._record.best or (self.center, math.nan)
        return Result(best.clone(), fitness, self.center.clone(), self._record.history)

    def remember(self, fitness: Fitness) -> None:  # noqa: B027 - most keep no fitness
        """Take note of a generation in which all members got the same, and nothing moves. For subclasses."""

    def narrow(self, factors: NDArray[np.float64]) -> None:  # noqa: B027 - most sigmas never grow
        """Multiply the standard deviation of each parameter by a factor.

        Strategies whose sigma is fixed or scheduled ignore this. For subclasses.

        Args:
            factors: shape (dimension,), above 0; above 1 for whole numbers of a search alone.
        """

    @abstractmethod
    def update(self, fitness: Fitness) -> None:
        """Move the distribution.

        Args:
            fitness: float64, shape (population,); finite, not all equal, larger is better.
        """

    def state_dict(self) -> State:
        """Everything that :meth:`load_state_dict` needs to go on bit for bit."""
        state: State = {
            "center": self.center.clone(),
            "generation": self.generation,
            "update_ratio": self.update_ratio,
            **{name: copied(getattr(self, name)) for name in adapted_by(type(self))},
            **self._record.state(),
        }
        return state

    def load_state_dict(self, state: State) -> None:
        """Take over the state of a strategy that was built with the same arguments.

        Raises:
            InputError: it is another's; nothing is taken over then.
        """
        names = ("center", "generation", "update_ratio", *adapted_by(type(self)))
        if missing := set(names) - state.keys():
            raise InputError(f"the state holds no {min(missing)}: it is another strategy's")
        if torch.as_tensor(state["center"]).shape != self.center.shape:
            raise InputError(f"the saved centre does not have this strategy's {self.dimension} parameters")
        self.center.copy_(torch.as_tensor(state["center"]))
        self.generation = int(state["generation"])
        self.population_size = self.first_population
        self._sampled, self._asked = None, False
        self.update_ratio = float(state["update_ratio"])
        for name in adapted_by(type(self)):
            setattr(self, name, as_kept(state[name], getattr(self, name)))
        self._record.load(state)


StrategyFactory = Callable[..., Strategy]  # called as factory(x0, population=..., sigma=..., ...)
