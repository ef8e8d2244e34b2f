"""Quality diversity with pyribs: evaluation of its solutions by workers, and strategies as its emitters.

Archives, schedulers and other emitters come from ribs: Tjanaka et al. 2023, "pyribs: A Bare-Bones Python
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

from ribs.archives import ArchiveBase  # noqa: E402 - after the check that ribs is installed
from ribs.emitters import EmitterBase  # noqa: E402
from ribs.emitters.rankers import RankerBase, TwoStageImprovementRanker  # noqa: E402

if TYPE_CHECKING:
    from escalade.config.keywords import TrainOptions

_SMALLEST = 1e-11
"""Largest standard deviation of the members below which a search restarts."""
_GROUPS = ("environment", "frames", "policy")
_FURTHER = (
    *("behavior", "episodes_per_member", "episode_seeds"),
    *("workers", "num_envs", "engine", "worker_resources", "step_timeout"),
)
_OF_RUNS = ("start_from", "cutoff", "normalize_observations")  # need the state of a run
_TAKEN = {
    name
    for name, option in OPTIONS.items()
    if (option.metadata["group"] in _GROUPS or name in _FURTHER) and name not in _OF_RUNS
}


def evaluator(
    env: str | Callable[..., Any],
    *,
    network: nn.Module | None = None,
    **options: Unpack[TrainOptions],
) -> Evaluator:
    """Start workers that evaluate the solutions of a scheduler as policies in an environment.

    Args:
        env: the environment, as in :func:`escalade.train`.
        network: a module of your own, as in :func:`escalade.train`.
        **options: options of the environment, the policy and the workers, as in :func:`escalade.train`.
            ``behavior`` is required. Observations are not normalized, as a normalizer that keeps learning
            would change the behavior of policies in the archive.

    Returns:
        The evaluator, to be called with the scheduler's solutions.

    Raises:
        InputError: an option is invalid, or cannot be used here.

    Examples:
        >>> from ribs.archives import GridArchive
        >>> from ribs.emitters import GaussianEmitter
        >>> from ribs.schedulers import Scheduler
        >>> with evaluator("CartPole-v1", behavior="observation:0,2", workers=0) as evaluate:
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
            raise InputError(f"`{name}` has no effect here; remove it")
    if options.get("behavior") is None:
        raise InputError("`behavior` is missing; set it to info:KEY, observation:NUMBER, ram or a function")
    # With the best actions, a solution's behavior does not depend on sampled actions.
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
    """Callable that returns the fitness and behavior of policies; a context manager that ends its workers.

    Each call plays ``episodes_per_member`` episodes of every policy. Fitness is the mean score, which is the
    return, or the sum of transformed rewards with the option ``reward``. A behavior is the mean over the
    episodes. The seeds of episodes depend on the run's seed, the number of the call and the index of the
    policy, so the same calls return the same numbers with any number of workers. ribs refuses results that
    are not numbers.

    Args:
        config: options of environment, policy and workers.
        parts: environment and policy built from ``config``.

    Attributes:
        start: initial parameters of the policy, shape (dimension,), float32.
        calls: number of calls so far.
    """

    def __init__(self, config: Config, parts: Parts) -> None:
        self._config, self._parts, self._score = config, parts, make_score(config)
        self.start = parts.start.copy()
        self.calls = 0
        self._engine = parts.start_engine(config)

    def __call__(self, solutions: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Evaluate policies.

        Args:
            solutions: parameters, shape (n, dimension); they are cast to float32.

        Returns:
            Fitness, shape (n,), and behaviors, shape (n, size).

        Raises:
            InputError: the shape is wrong, or a value is not a finite float32.
            EnvironmentFailure: the environment raised.
        """
        with np.errstate(over="ignore"):  # refused below
            vectors = np.array(solutions, np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != len(self.start) or not len(vectors):
            raise InputError(f"solutions must have shape (n, {len(self.start)}), not {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise InputError("solutions hold a NaN, an infinity, or a number beyond float32")
        config, population = self._config, DensePopulation(vectors)
        job = EpisodeJob(
            seed=config.seed,
            generation=self.calls,
            population=population,
            episodes=config.episodes_per_member,
            seed_sharing=config.episode_seeds,
        )
        with one_thread():  # as in training, for when there are no workers
            episodes = Episodes.of(self._engine.run(job, job.items))
        if self.calls == 0:
            check_known(self._parts.environment, episodes.infos)
        self.calls += 1
        fitness = self._score.fitness(population, episodes)
        return fitness, episodes.mean_behaviors(len(vectors))

    def policy(self, solution: ArrayLike) -> Policy:
        """Return a policy with these parameters, shape (dimension,), which can be saved and rendered."""
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

    The strategy's fitness is the rank of a solution. As in CMA-ME's improvement emitter (Fontaine et al.
    2020, arXiv 1912.02400, algorithm 3), solutions that fill a new cell rank before those that improve one,
    and these before all others. If no solution of a batch enters the archive, the strategy restarts from an
    elite, or from ``x0`` while the archive is empty. The better half are parents, as with ribs'
    ``selection_rule="mu"``; its other rule, in which all improvements are parents, needs a strategy with any
    number of parents.

    Args:
        archive: the scheduler's archive of ribs.
        x0: the initial center, shape (dimension,), the dimension of the archive's solutions.
        strategy: a name in the registry, a class, or a callable with the same arguments.
        population: solutions in a batch.
        sigma: initial standard deviation of the noise. None takes the strategy's default.
        ranker: a class of :mod:`ribs.emitters.rankers`, which orders the solutions.
        bounds: a pair ``(lower, upper)`` for each number of a solution, as for emitters of ribs. Either
            bound, or the pair, may be None. Solutions stay within as in :func:`escalade.optimize`.
        seed: a number or a ``numpy.random.SeedSequence``. The same seed returns the same solutions, so use a
            different one for each emitter of an archive.
        options: further options of the strategy.

    Raises:
        InputError: an argument is invalid; the message names it.
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
            why = "ranks are maximized" if own[0] == "direction" else "pass it as an argument"
            raise InputError(f"`options` cannot contain {own[0]}; {why}")
        self._strategy = strategy
        self._options = {"population": population, "sigma": sigma, **(options or {})}
        if isinstance(seed, np.random.SeedSequence):
            seed = int(seed.generate_state(1)[0])
        self._seed = seed
        self.restarts = 0
        """Number of restarts."""
        self._x0, size = np.array(x0), archive.solution_dim
        if self._x0.shape not in (size, (size,)):
            raise InputError(f"x0 must have the archive's solution_dim, {size}, not shape {self._x0.shape}")
        super().__init__(archive, solution_dim=size, bounds=bounds, lower_bounds=None, upper_bounds=None)
        self._box = Bounds((self.lower_bounds, self.upper_bounds), len(self._x0))
        if self._box.any:
            self._box.check(self._x0)
        self._running = self._begin(self._x0)
        self.batch_size = self._running.population_size  # a partial may fix it
        self._ranker = ranker(seed)
        self._ranker.reset(self, archive)

    def ask(self) -> NDArray[Any]:
        """Return the members of a generation, shape (population, dimension)."""
        return self._box.apply(self._running.ask().numpy())

    def tell(
        self,
        solution: ArrayLike,
        objective: ArrayLike,
        measures: ArrayLike,
        add_info: Mapping[str, Any],
        **fields: ArrayLike,
    ) -> None:
        """Update the strategy with the ranks of its members in the archive."""
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
        """Return True if the search distribution is too narrow or too small, as in ribs' own emitters."""
        return (self._running.condition or 1) > CONDITION or float(np.max(self._running.scale)) < _SMALLEST

    def _begin(self, x0: ArrayLike) -> Strategy:
        seed = int(seeds(self._seed, Stream.RESTART, self.restarts, 0)) if self.restarts else self._seed
        # Elites of other emitters may be outside the bounds of this one.
        start: Any = (
            self._box.invert(np.clip(x0, self._box.lower, self._box.upper)) if self._box.any else np.array(x0)
        )
        made = build_strategy(self._strategy, start, self._options | {"seed": seed})
        refuse_ranks(made)
        confine(made, self._box.width)
        return made
