"""Quality diversity by pyribs: our workers play what its schedulers ask for, our strategies are its emitters.

Archives, schedulers and other emitters are those of ribs: Tjanaka et al. 2023, "pyribs: A Bare-Bones Python
Library for Quality Diversity Optimization", arXiv 2303.00191.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from escalade.api.named import code_to_names
from escalade.api.opening import warm_up_for
from escalade.config.conversion import from_values
from escalade.config.options import OPTIONS, Config
from escalade.errors import InputError
from escalade.perturbation import DensePopulation, Stream, seeds
from escalade.policies.policy import Policy
from escalade.policies.population.layout import copy_module
from escalade.rollout.episodes import EpisodeJob, Episodes, check_known
from escalade.strategies import Strategy
from escalade.strategies.base import StrategyFactory
from escalade.strategies.bounds import Bounds, confine
from escalade.strategies.matrix import CONDITION
from escalade.support.exact import one_thread
from escalade.support.imports import check_installed
from escalade.training.environments import limited
from escalade.training.parts import Parts, make_parts
from escalade.training.score import make_score
from escalade.training.strategy import build_strategy, refuse_ranks

check_installed("escalade.qd", "qd", "ribs")

from ribs.archives import ArchiveBase  # noqa: E402 - after the line that says how to install it
from ribs.emitters import EmitterBase  # noqa: E402
from ribs.emitters.rankers import RankerBase, TwoStageImprovementRanker  # noqa: E402

if TYPE_CHECKING:
    from escalade.config.keywords import TrainOptions

_SMALLEST = 1e-11
"""Smallest value of the members' largest deviation with which a search goes on."""
_GROUPS = ("environment", "frames", "policy")
_FURTHER = (
    *("behaviour", "episodes_per_member", "episode_seeds"),
    *("workers", "num_envs", "engine", "worker_resources", "step_timeout"),
)
_OTHERS_BUSINESS = ("start_from", "cutoff", "normalize_observations")  # which a run learns or moves
_TAKEN = {
    name
    for name, option in OPTIONS.items()
    if (option.metadata["group"] in _GROUPS or name in _FURTHER) and name not in _OTHERS_BUSINESS
}


def evaluator(
    env: str | Callable[..., Any],
    *,
    network: nn.Module | None = None,
    **options: Unpack[TrainOptions],
) -> Evaluator:
    """Start workers that play policies of an environment: what evaluates the solutions of a scheduler.

    Args:
        env: as :func:`escalade.train` takes it.
        network: a module of yours, as there.
        **options: of the environment, the policy and the workers, as there; ``behaviour`` must be given.
            Observations are not normalised, as what was learnt of them would change what older policies do.

    Raises:
        InputError: an option is wrong, or has no meaning here.

    Examples:
        >>> from ribs.archives import GridArchive
        >>> from ribs.emitters import GaussianEmitter
        >>> from ribs.schedulers import Scheduler
        >>> with evaluator("CartPole-v1", behaviour="observation:0,2", workers=0) as evaluate:
        ...     size = len(evaluate.start)
        ...     archive = GridArchive(solution_dim=size, dims=(8, 8), ranges=((-3, 3), (-0.3, 0.3)))
        ...     emitter = GaussianEmitter(archive, sigma=0.5, x0=evaluate.start, batch_size=8, seed=1)
        ...     scheduler = Scheduler(archive, [emitter])
        ...     scheduler.tell(*evaluate(scheduler.ask()))
        >>> len(archive) > 1
        True
    """
    for name in options:
        if name in OPTIONS and name not in _TAKEN:
            raise InputError(f"`{name}` has no meaning here: leave it out")
    if options.get("behaviour") is None:
        raise InputError("`behaviour` is missing: give info:KEY, observation:NUMBER, ram or a function")
    # The best action: a solution's behaviour is to be its own, not that of a draw.
    values = from_values(code_to_names({"env": env, "head": "plain"} | options)) | {
        "normalize_observations": False
    }
    config = Config(**values)
    warm_up_for(config, network)
    with one_thread():
        parts = make_parts(config, network)
        parts.environment = limited(parts.environment)
        return Evaluator(config, parts)


class Evaluator:
    """Plays policies, and says how well and how they did; a context manager that ends its workers.

    Each call plays ``episodes_per_member`` episodes of every policy; fitness is their mean score (the return,
    or with options of the reward what those make of it), a behaviour the mean of theirs. Episodes begin with
    seeds of the run's seed, the number of the call and the policy's place: the same calls give the same
    numbers with any number of workers. What is no number ribs refuses.

    Args:
        config: what is played.
        parts: what that needs, but the workers.

    Attributes:
        start: parameters of the policy as it begins, shape (dimension,), float32.
        calls: how often it was called.
    """

    def __init__(self, config: Config, parts: Parts) -> None:
        self._config, self._parts, self._score = config, parts, make_score(config)
        self.start = parts.start.copy()
        self.calls = 0
        self._engine = parts.start_engine(config)

    def __call__(self, solutions: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Fitness of policies, shape (n,), and their behaviours, shape (n, size).

        Args:
            solutions: parameters, shape (n, dimension); they are cast to float32.

        Raises:
            InputError: they have another shape, or are no numbers.
            EnvironmentFailure: the environment raised.
        """
        with np.errstate(over="ignore"):  # refused below
            vectors = np.array(solutions, np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != len(self.start) or not len(vectors):
            raise InputError(f"solutions must be of shape (n, {len(self.start)}), and not {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise InputError("solutions hold a NaN, an infinity, or what float32 cannot hold")
        config, population = self._config, DensePopulation(vectors)
        job = EpisodeJob(
            seed=config.seed,
            generation=self.calls,
            population=population,
            episodes=config.episodes_per_member,
            seed_sharing=config.episode_seeds,
        )
        with one_thread():  # as in training, where there are no workers
            episodes = Episodes.of(self._engine.run(job, job.items))
        if self.calls == 0:
            check_known(self._parts.environment, episodes.infos)
        self.calls += 1
        fitness = self._score.fitness(population, episodes)
        return fitness, episodes.mean_behaviours(len(vectors))

    def policy(self, solution: ArrayLike) -> Policy:
        """A policy with these parameters, shape (dimension,): to call, or to save for ``escalade render``."""
        policy = copy_module(self._parts.policy).eval()
        policy.set(np.array(solution, np.float32), None)
        return policy

    def close(self) -> None:
        """End the workers."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class StrategyEmitter(EmitterBase):
    """A strategy of :mod:`escalade.strategies` as an emitter of ribs.

    It is told ranks: as CMA-ME's improvement emitter has them (Fontaine et al. 2020, arXiv 1912.02400,
    algorithm 3), solutions that fill a new cell before those that improve one, and these before all others.
    When none of its solutions comes into the archive, it begins anew from one that is there, or from ``x0``
    while there is none. The better half counts, as with ribs' ``selection_rule="mu"``; its other rule, which
    lets all improvements count, needs a strategy that takes any number of parents.

    Args:
        archive: of ribs; the scheduler's.
        x0: the first centre, shape (dimension,), with as many numbers as the archive's solutions.
        strategy: a name of the registry, a class, or what is called like one.
        population: solutions a batch.
        sigma: standard deviation of the first noise; the strategy's own when None.
        ranker: a class of :mod:`ribs.emitters.rankers`, which orders the solutions.
        bounds: a pair ``(lower, upper)`` for each number of a solution, as for ribs' emitters; either of
            them, or the pair, may be None. Solutions are kept within as in :func:`escalade.optimize`.
        seed: a number or a ``numpy.random.SeedSequence``; the same seed gives the same solutions, so give
            each of an archive's emitters a different one.
        options: further options of the strategy.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    def __init__(
        self,
        archive: ArchiveBase,
        x0: ArrayLike,
        strategy: str | StrategyFactory = "cma-es",
        *,
        population: int = 36,
        sigma: float | None = None,
        ranker: Callable[[int], RankerBase] = TwoStageImprovementRanker,
        bounds: Any = None,
        seed: int | np.random.SeedSequence = 0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if own := [name for name in ("direction", "population", "seed", "sigma") if name in (options or {})]:
            why = "ranks are maximised" if own[0] == "direction" else "give it beside `options`"
            raise InputError(f"`options` cannot have {own[0]}: {why}")
        self._strategy = strategy
        self._options = {"population": population, "sigma": sigma, **(options or {})}
        if isinstance(seed, np.random.SeedSequence):
            seed = int(seed.generate_state(1)[0])
        self._seed = seed
        self.restarts = 0
        """Times that it began anew."""
        self._x0, size = np.array(x0), archive.solution_dim
        if self._x0.shape not in (size, (size,)):
            raise InputError(f"x0 of shape {self._x0.shape} does not fit the archive's solution_dim, {size}")
        super().__init__(archive, solution_dim=size, bounds=bounds, lower_bounds=None, upper_bounds=None)
        self._box = Bounds((self.lower_bounds, self.upper_bounds), len(self._x0))
        if self._box.any:
            self._box.check(self._x0)
        self._running = self._begin(self._x0)
        self.batch_size = self._running.population_size  # a partial may fix it
        self._ranker = ranker(seed)
        self._ranker.reset(self, archive)

    def ask(self) -> NDArray[Any]:
        """Members of a generation, shape (population, dimension)."""
        return self._box.apply(self._running.ask().numpy())

    def tell(
        self,
        solution: ArrayLike,
        objective: ArrayLike,
        measures: ArrayLike,
        add_info: Mapping[str, Any],
        **fields: ArrayLike,
    ) -> None:
        """Tell the strategy how its members rank by what the archive says of them."""
        data = {"solution": solution, "objective": objective, "measures": measures, **fields}
        arrays = {name: np.asarray(values) for name, values in data.items()}
        info = {name: np.asarray(values) for name, values in add_info.items()}
        best_first, _ = self._ranker.rank(self, self.archive, arrays, info)
        ranks = np.empty(len(best_first))
        ranks[best_first] = np.arange(len(best_first), 0, -1)
        self._running.tell(ranks)
        confine(self._running, self._box.width)
        if not info["status"].any() or self._has_converged():
            self.restarts += 1
            empty = self.archive.empty
            self._running = self._begin(self._x0 if empty else self.archive.sample_elites(1)["solution"][0])
            self._ranker.reset(self, self.archive)

    def _has_converged(self) -> bool:
        """True where the search distribution is too thin or too small to find more, as in ribs' own."""
        return (self._running.condition or 1) > CONDITION or float(np.max(self._running.scale)) < _SMALLEST

    def _begin(self, x0: ArrayLike) -> Strategy:
        seed = int(seeds(self._seed, Stream.RESTART, self.restarts, 0)) if self.restarts else self._seed
        # Other emitters of the archive may have gone beyond the bounds of this one.
        start: Any = (
            self._box.invert(np.clip(x0, self._box.lower, self._box.upper)) if self._box.any else np.array(x0)
        )
        made = build_strategy(self._strategy, start, self._options | {"seed": seed})
        refuse_ranks(made)
        confine(made, self._box.width)
        return made
