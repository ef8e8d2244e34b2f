"""A generation's episodes: what they have in common, and their results."""

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
from escalade.rollout.behaviour import check_sizes

Vector = NDArray[np.float32]
OBSERVED = 1024
"""Episodes of a generation, at most, whose observations the normaliser learns from."""


MOMENTS = "moments"
"""The field of an episode's record that not all of them have."""


@dataclass(frozen=True)
class RecordType:
    """The fields of an episode's record: a structured numpy type, made once for a run.

    A new field also needs its place where :class:`Rollouts` fills it, and in :class:`Episodes`.
    """

    infos: int = 0
    """Numbers of the last info, see ``info_keys``."""
    observation: int = 0
    """Numbers of an observation whose moments are kept."""
    behaviour: int = 0
    """Numbers of a behaviour."""

    @cached_property
    def plain(self) -> np.dtype[np.void]:
        """Return, length, score (what fitness is the mean of), the last info's numbers and the behaviour."""
        numbers = [("infos", "f8", (self.infos,)), ("behaviour", "f4", (self.behaviour,))]
        return np.dtype([("return", "f8"), ("length", "i8"), ("score", "f8"), *numbers])

    @cached_property
    def observed(self) -> np.dtype[np.void]:
        """The same, the mean observation, and the sum of squared deviations from it."""
        return np.dtype([*self.plain.descr, (MOMENTS, "f8", (2, self.observation))])


@dataclass(frozen=True)
class EpisodeJob:
    """The facts that a generation's episodes share; sent to each worker once.

    Items 0 to ``members * episodes - 1`` are the population's episodes, member by member; the
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
    """Index of the first evaluation among those of the same stream and generation."""
    normalization: Normalization | None = None
    cap: int | None = None
    """Steps after which a member's episode is cut; evaluations are not."""
    along: bool = False
    """True if members' episodes begin in states of the first evaluation's, which each worker plays."""
    first_member: int = 0
    """The member that item 0 belongs to, when a generation grows by further members."""
    best_evaluations: int = 0
    """Evaluations that come last and take the best action, though the policy draws its actions.

    They play the episodes of the evaluations before them again, unless all are of this kind.
    """
    seed_sharing: str = "pair"
    """The members that play the same episodes: of a ``pair``, a ``generation``, or a ``member`` alone."""

    @property
    def members(self) -> int:
        """The number of members whose episodes this job holds."""
        return self.population.size - self.first_member if self.population else 0

    @property
    def training_items(self) -> int:
        """The number of items that are episodes of members."""
        return self.members * self.episodes

    @property
    def items(self) -> int:
        """The number of episodes to run."""
        return self.training_items + self.evaluations

    @property
    def drawn_items(self) -> int:
        """The number of items whose actions are drawn, if the policy draws: all but the best evaluations."""
        return self.items - self.best_evaluations

    def observed(self, items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The items that report the moments of their observations: every n-th, of a large population.

        Evaluations report none: the normaliser learns from members alone. A thousand episodes tell as much
        of the observations as ten thousand, at a tenth of what the trainer takes in (Salimans et al. 2017
        take one in a hundred).
        """
        every = max(1, -(-self.training_items // OBSERVED))
        return np.asarray((items % every == 0) & (items < self.training_items))

    def member(self, item: int) -> int | None:
        """The member whose episode an item is; None for the unperturbed policy's."""
        return self.first_member + item // self.episodes if item < self.training_items else None

    def episode_seeds(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Episode seeds. Members that share theirs differ in their policies alone."""
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
    def _sharers(self) -> int:
        """The number of members in a row that share their episode seeds."""
        if self.seed_sharing == "generation":
            return 2**62  # more than there are
        paired = self.population is not None and self.population.antithetic
        return 2 if self.seed_sharing == "pair" and paired else 1

    def describe(self, item: int) -> str:
        """Say whose episode an item is and how it began: what reproduces it."""
        member = self.member(item)
        who = "the unperturbed policy" if member is None else f"member {member}"
        seed = int(self.episode_seeds(np.array([item]))[0])
        return f"{who} of generation {self.generation + 1} (its episode began with reset(seed={seed}))"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle a centre that is also the population's once."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        shared = getattr(self.population, "center", None)
        if self.center is not None and shared is not None and np.array_equal(self.center, shared):
            state["center"] = shared
        return state

    def individual(self, item: int) -> tuple[Population, int]:
        """The population an item's parameters are of, and its number there; the centre is one of its own."""
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
    """Observations that an episode's moments are of, shape (n,); 0 where it does not report them."""
    moments: NDArray[np.float64]
    """Mean observation, and sum of squared deviations from it, of each episode that has ``seen`` some.

    Shape (episodes that report them, 2, size). They are those of the episode alone.
    """
    scores: NDArray[np.float64]
    """The numbers that fitness is made of: sums of transformed rewards, or returns where none are."""
    infos: NDArray[np.float64]
    """Numbers of the episodes' last infos, shape (n, keys): NaN where there is none of that name."""
    behaviours: NDArray[np.float32]
    """Numbers that say how the episodes went, shape (n, size): size is 0 where nobody asked."""
    raised: NDArray[np.object_]
    """Exceptions of episodes that were forgiven, in words, shape (n,); None where there was none."""

    @classmethod
    def of(cls, results: Results) -> Episodes:
        """The records that :class:`Rollouts` handed in, by item."""
        batches = [(np.asarray(items, np.int64), records) for items, records in results.in_batches()]
        sizes = {records["behaviour"].shape[1] for _, records in batches}
        if len(sizes) > 1:
            sizes.discard(0)  # of episodes that failed before a function told its size
        check_sizes(sizes)
        order = np.argsort(np.concatenate([items for items, _ in batches]))

        def column(name: str) -> NDArray[Any]:
            parts = [records[name] for _, records in batches]
            if name == "behaviour":
                (size,) = sizes
                parts = [part if part.shape[1] == size else _no_numbers(len(part), size) for part in parts]
            return np.concatenate(parts)[order]

        lengths = column("length")
        seen = np.zeros_like(lengths)
        observed = [(items, records[MOMENTS]) for items, records in batches if MOMENTS in records.dtype.names]
        moments = np.zeros((0, 2, 0))  # without a normaliser, they do not travel
        if observed:
            items = np.concatenate([items for items, _ in observed])
            seen[items] = lengths[items]
            moments = np.concatenate([found for _, found in observed])[np.argsort(items)]
        raised = np.full(len(lengths), None, np.object_)
        for item, words in results.raised.items():
            raised[item] = words
        columns = (column("return"), lengths, seen, moments, column("score"), column("infos"))
        return cls(*columns, column("behaviour"), raised)

    @property
    def first_raised(self) -> str | None:
        """The exception of the first episode that raised one, in words; None where none did."""
        return next((words for words in self.raised if words is not None), None)

    def failed(self) -> NDArray[np.bool_]:
        """True of episodes that failed, or whose return is no number, shape (episodes,)."""
        return ~np.isfinite(self.returns)

    def with_failed_as_worst(self) -> Episodes:
        """The same; a failed episode has the worst return and score of the others, where any did not fail."""
        failed = self.failed()
        if failed.all() or not failed.any():
            return self
        returns, scores = self.returns, self.scores
        return replace(
            self,
            returns=np.where(failed, returns[~failed].min(), returns),
            scores=np.where(failed, scores[~failed].min(), scores),
        )

    def mean_behaviours(self, members: int) -> NDArray[np.float32]:
        """Mean behaviour of each member's episodes, shape (members, size)."""
        if not self.behaviours.size:  # every episode failed before a function said how many there are
            return _no_numbers(members, 0)
        of_members = self.behaviours.reshape(members, -1, self.behaviours.shape[1])
        with np.errstate(over="ignore"):
            return np.asarray(of_members.mean(axis=1, dtype=np.float64).astype(np.float32))

    def __add__(self, more: Episodes) -> Episodes:
        """These episodes, then ``more``."""
        width = max(self.behaviours.shape[1], more.behaviours.shape[1])  # 0 where each episode failed
        parts = [
            part if part.behaviours.shape[1] else part._with_no_behaviours(width) for part in (self, more)
        ]
        pairs = [[getattr(part, column.name) for part in parts] for column in fields(self)]
        return Episodes(*map(np.concatenate, pairs))

    def _with_no_behaviours(self, size: int) -> Episodes:
        return replace(self, behaviours=_no_numbers(len(self.lengths), size))

    def __getitem__(self, part: slice) -> Episodes:
        begin, end, _ = part.indices(len(self.seen))
        before, within = np.count_nonzero(self.seen[:begin]), np.count_nonzero(self.seen[begin:end])
        columns = {column.name: getattr(self, column.name)[begin:end] for column in fields(self)}
        return Episodes(**columns | {MOMENTS: self.moments[before : before + within]})


def _no_numbers(count: int, size: int) -> NDArray[np.float32]:
    return np.full((count, size), np.nan, np.float32)


def episode_steps(records: NDArray[Any]) -> int:
    """Environment steps of records that :class:`Rollouts` handed in."""
    return int(records["length"].sum())


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
