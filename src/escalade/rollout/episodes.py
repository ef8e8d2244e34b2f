"""A generation's episodes: the job that describes them, and their results."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.engines.results import Results
from escalade.envs.environment import Environment, first_info
from escalade.envs.wrapping import entries
from escalade.errors import InputError
from escalade.perturbation import CenterPopulation, Population, Stream, seeds
from escalade.policies.normalizer import Normalization
from escalade.rollout.behavior import check_sizes

Vector = NDArray[np.float32]
OBSERVED = 1024
"""Maximum number of episodes per generation whose observations update the normalizer."""


MOMENTS = "moments"
"""The field that only some episodes' records have."""


@dataclass(frozen=True)
class RecordType:
    """The fields of an episode's record: a structured NumPy dtype, created once per run.

    A new field must also be filled by :class:`Rollouts`, and added to :class:`Episodes`.
    """

    infos: int = 0
    """Number of values from the last info, see ``info_keys``."""
    observation: int = 0
    """Size of an observation whose moments are recorded."""
    behavior: int = 0
    """Size of a behavior."""

    @cached_property
    def plain(self) -> np.dtype[np.void]:
        """Dtype of return, length, score (fitness is its mean), the last info's numbers and behavior."""
        numbers = [("infos", "f8", (self.infos,)), ("behavior", "f4", (self.behavior,))]
        return np.dtype([("return", "f8"), ("length", "i8"), ("score", "f8"), *numbers])

    @cached_property
    def observed(self) -> np.dtype[np.void]:
        """The plain fields, then the mean observation and the sum of squared deviations from it."""
        return np.dtype([*self.plain.descr, (MOMENTS, "f8", (2, self.observation))])


@dataclass(frozen=True)
class EpisodeJob:
    """A generation's episodes, as sent to each worker once.

    Items 0 to ``members * episodes - 1`` are the population's episodes, member by member. The
    ``evaluations`` after them are episodes of ``center``, unperturbed and without action noise.
    """

    seed: int
    generation: int
    population: Population | None = None
    episodes: int = 1
    center: Vector | None = None
    evaluations: int = 0
    evaluation_stream: Stream = Stream.EVALUATION
    first_evaluation: int = 0
    """Index of the first evaluation within its stream and generation."""
    normalization: Normalization | None = None
    cap: int | None = None
    """Steps after which a member's episode is cut. Evaluations are not cut."""
    along: bool = False
    """True if members' episodes start in states of the first evaluation, which each worker plays itself."""
    first_member: int = 0
    """The member of item 0, if a generation grows by further members."""
    best_evaluations: int = 0
    """Number of evaluations, the last ones, that take the best action although the policy samples actions.

    They repeat the episodes of the evaluations before them, unless all evaluations are of this kind.
    """
    seed_sharing: str = "pair"
    """The members that share episode seeds: ``pair``, ``generation``, or ``member`` for none."""

    @property
    def members(self) -> int:
        """Number of members whose episodes are in this job."""
        return self.population.size - self.first_member if self.population else 0

    @property
    def training_items(self) -> int:
        """Number of items that are episodes of members."""
        return self.members * self.episodes

    @property
    def items(self) -> int:
        """Number of episodes to run."""
        return self.training_items + self.evaluations

    @property
    def drawn_items(self) -> int:
        """Number of items whose actions are sampled if the policy samples: all but the best evaluations."""
        return self.items - self.best_evaluations

    def observed(self, items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the items that report moments of their observations.

        Only members report moments, and in a large population only every n-th episode. A thousand episodes
        estimate the moments about as well as ten thousand, at a tenth of the trainer's input (Salimans et al.
        2017 use one in a hundred).
        """
        every = max(1, -(-self.training_items // OBSERVED))
        return np.asarray((items % every == 0) & (items < self.training_items))

    def member(self, item: int) -> int | None:
        """Return the member of an item, or None if it is an evaluation of the unperturbed policy."""
        return self.first_member + item // self.episodes if item < self.training_items else None

    def episode_seeds(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the items' episode seeds."""
        trained = self.training_items
        member, episode = np.divmod(items, self.episodes)
        training = seeds(
            self.seed, Stream.EPISODE, self.generation, (self.first_member + member) // self._sharers, episode
        )
        drawn = self.evaluations - self.best_evaluations
        numbers = self.first_evaluation + (items - trained) % (drawn or max(1, self.evaluations))
        evaluation = seeds(self.seed, self.evaluation_stream, self.generation, numbers)
        return np.where(items < trained, training, evaluation)

    @property
    def pairs_differ(self) -> bool:
        """True if episodes of different antithetic pairs begin in different states."""
        return self.along and self._sharers == 2

    @property
    def _sharers(self) -> int:
        """Number of consecutive members that share their episode seeds."""
        if self.seed_sharing == "generation":
            return 2**62  # more than any population has
        paired = self.population is not None and self.population.antithetic
        return 2 if self.seed_sharing == "pair" and paired else 1

    def describe(self, item: int) -> str:
        """Describe an item in an error message, with the seed that reproduces it."""
        member = self.member(item)
        who = "the unperturbed policy" if member is None else f"member {member}"
        seed = int(self.episode_seeds(np.array([item]))[0])
        return f"{who} of generation {self.generation + 1} (its episode began with reset(seed={seed}))"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the center only once if it is also the population's."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        shared = getattr(self.population, "center", None)
        if self.center is not None and shared is not None and np.array_equal(self.center, shared):
            state["center"] = shared
        return state

    def individual(self, item: int) -> tuple[Population, int]:
        """Return the population of an item, and its number there. The center is a population of one."""
        member = self.member(item)
        if member is None:
            assert self.center is not None
            return CenterPopulation(self.center), 0
        assert self.population is not None
        return self.population, member


@dataclass(frozen=True)
class Episodes:
    """Results of a job's episodes, in item order."""

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    seen: NDArray[np.int64]
    """Number of observations in an episode's moments, shape (n,); 0 if the episode reports none."""
    moments: NDArray[np.float64]
    """Mean observation and sum of squared deviations from it, for each episode whose ``seen`` is not 0.

    Shape (reporting episodes, 2, size). Each row is of one episode only.
    """
    scores: NDArray[np.float64]
    """Sums of transformed rewards, or returns if rewards are not transformed, shape (n,)."""
    infos: NDArray[np.float64]
    """Numbers of the episodes' last infos, shape (n, keys); NaN if an info lacks the key."""
    behaviors: NDArray[np.float32]
    """Behaviors of the episodes, shape (n, size); the size is 0 if no behavior is configured."""
    raised: NDArray[np.object_]
    """Messages of tolerated exceptions of episodes, shape (n,), None for episodes without one."""

    @classmethod
    def of(cls, results: Results) -> Episodes:
        """Collect the records of :class:`Rollouts` in item order."""
        batches = [(np.asarray(items, np.int64), records) for items, records in results.in_batches()]
        sizes = {records["behavior"].shape[1] for _, records in batches}
        if len(sizes) > 1:
            sizes.discard(0)  # of episodes that failed before the function's size was known
        check_sizes(sizes)
        order = np.argsort(np.concatenate([items for items, _ in batches]))

        def column(name: str) -> NDArray[Any]:
            parts = [records[name] for _, records in batches]
            if name == "behavior":
                (size,) = sizes
                parts = [part if part.shape[1] == size else _no_numbers(len(part), size) for part in parts]
            return np.concatenate(parts)[order]

        lengths = column("length")
        seen = np.zeros_like(lengths)
        observed = [(items, records[MOMENTS]) for items, records in batches if MOMENTS in records.dtype.names]
        moments = np.zeros((0, 2, 0))  # not sent without a normalizer
        if observed:
            items = np.concatenate([items for items, _ in observed])
            seen[items] = lengths[items]
            moments = np.concatenate([found for _, found in observed])[np.argsort(items)]
        raised = np.full(len(lengths), None, np.object_)
        for item, words in results.raised.items():
            raised[item] = words
        columns = (column("return"), lengths, seen, moments, column("score"), column("infos"))
        return cls(*columns, column("behavior"), raised)

    @property
    def first_raised(self) -> str | None:
        """Message of the first episode's exception, or None if no episode raised."""
        return next((words for words in self.raised if words is not None), None)

    def failed(self) -> NDArray[np.bool_]:
        """Return a mask of the episodes that failed or have a non-finite return, shape (episodes,)."""
        return ~np.isfinite(self.returns)

    def with_failed_as_worst(self) -> Episodes:
        """Replace return and score of failed episodes by the worst of the others, unless all failed."""
        failed = self.failed()
        if failed.all() or not failed.any():
            return self
        returns, scores = self.returns, self.scores
        return replace(
            self,
            returns=np.where(failed, returns[~failed].min(), returns),
            scores=np.where(failed, scores[~failed].min(), scores),
        )

    def mean_behaviors(self, members: int) -> NDArray[np.float32]:
        """Return the mean behavior of each member's episodes, shape (members, size)."""
        if not self.behaviors.size:  # every episode failed before the function's size was known
            return _no_numbers(members, 0)
        of_members = self.behaviors.reshape(members, -1, self.behaviors.shape[1])
        with np.errstate(over="ignore"):
            return np.asarray(of_members.mean(axis=1, dtype=np.float64).astype(np.float32))

    def __add__(self, more: Episodes) -> Episodes:
        """Concatenate these episodes and ``more``."""
        width = max(self.behaviors.shape[1], more.behaviors.shape[1])  # 0 if all episodes failed
        parts = [part if part.behaviors.shape[1] else part._with_no_behaviors(width) for part in (self, more)]
        pairs = [[getattr(part, column.name) for part in parts] for column in fields(self)]
        return Episodes(*map(np.concatenate, pairs))

    def _with_no_behaviors(self, size: int) -> Episodes:
        return replace(self, behaviors=_no_numbers(len(self.lengths), size))

    def __getitem__(self, part: slice) -> Episodes:
        begin, end, _ = part.indices(len(self.seen))
        before, within = np.count_nonzero(self.seen[:begin]), np.count_nonzero(self.seen[begin:end])
        columns = {column.name: getattr(self, column.name)[begin:end] for column in fields(self)}
        return Episodes(**columns | {MOMENTS: self.moments[before : before + within]})


def _no_numbers(count: int, size: int) -> NDArray[np.float32]:
    return np.full((count, size), np.nan, np.float32)


def episode_steps(records: NDArray[Any]) -> int:
    """Count the environment steps in records of :class:`Rollouts`."""
    return int(records["length"].sum())


def mean_known(values: NDArray[np.float64]) -> float | None:
    """Return the mean of the finite ``values``, shape (n,), or None if there are none."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def check_known(
    environment: Environment, infos: NDArray[np.float64], requested: Collection[str] | None = None
) -> None:
    """Check that every key is in the last info of some episode.

    Args:
        environment: The environment with the ``info_keys``.
        infos: Numbers of the last infos, shape (episodes, keys).
        requested: Keys to check, or None for all.

    Raises:
        InputError: A key is in no last info. The message lists the entries of an info of the environment.
    """
    for key, values in zip(environment.info_keys, infos.T, strict=True):
        if (requested is None or key in requested) and mean_known(values) is None:
            raise InputError(
                f"`{environment.option_of(key)}` {key}: no episode's last info has a number with this key "
                f"(the info of a first step has {entries(first_info(environment))})"
            )
