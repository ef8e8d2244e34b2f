"""Novelty search with evolution strategies.

Conti et al. 2018, "Improving Exploration in Evolution Strategies for Deep Reinforcement Learning via a
Population of Novelty-Seeking Agents", arXiv 1712.06560.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escalade.errors import EnvironmentFailure, InputError
from escalade.perturbation import Stream, hash64
from escalade.storage.tensors import Tensors
from escalade.strategies.ranking import Array
from escalade.strategies.shaping import centered_ranks, finite_fitness, usable, usable_number

Behaviors = NDArray[np.float32]

FORMS = (
    "ns, nsr or nsra, with options as in nsr:k=10,centers=5 or nsra:k=10,weight=1,step=0.05,patience=50; "
    "with several centers, each has its own strategy and normalizer, and one, drawn by novelty, moves in a "
    "generation"
)
_BOUNDS = {
    **{"k": (1, 10**6), "centers": (1, 1000)},
    **{"weight": (0, 1), "step": (0, 1), "patience": (1, 10**9)},
}
CENTER = "center"
"""Column of progress.csv with the number of the center that moved, if there are several."""
_ARCHIVE, _ORIGINS, _COURSE = "novelty.archive", "novelty.origins", "novelty.course"
_PAIRS = 2**22  # distances in memory at once


class NoveltyOptions(str):
    """Method and options that combine novelty and fitness, as text: ``ns``, ``nsr:k=10`` and so on.

    Raises:
        InputError: the text is invalid.
    """

    method: str
    """``ns``, ``nsr`` or ``nsra``."""
    k: int = 10
    """Number of nearest neighbors in the archive; novelty is the mean distance to them."""
    centers: int = 1
    """Number of centers, each with its own strategy and normalizer. Novelty draws the one that moves next."""
    weight: float = 1.0
    """Weight of fitness in the first generation of ``nsra``; the weight of novelty is 1 - weight."""
    step: float = 0.05
    """Amount by which the weight changes."""
    patience: int = 50
    """Generations without a better center before the weight decreases."""

    def __new__(cls, text: str) -> NoveltyOptions:
        made = super().__new__(cls, text)
        made.method, colon, rest = made.partition(":")
        options = dict(part.partition("=")[::2] for part in rest.split(",")) if colon else {}
        known = _BOUNDS if made.method == "nsra" else ("k", "centers")
        if made.method not in ("ns", "nsr", "nsra") or not options.keys() <= set(known):
            raise InputError(f"`novelty` {text} must be {FORMS}")
        for name, value in options.items():
            (least, most), kind = _BOUNDS[name], type(getattr(cls, name))
            try:
                number = kind(value)
            except ValueError:
                number = math.nan
            if not least <= number <= most:
                what = "a whole number" if kind is int else "a number"
                raise InputError(f"`novelty` {text}: {name} must be {what} from {least} to {most}")
            setattr(made, name, number)
        return made

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of progress.csv about novelty."""
        weight = ("fitness_weight",) if self.method == "nsra" else ()
        return ("novelty_mean", "center_novelty", *weight, *((CENTER,) if self.centers > 1 else ()))


@dataclass(frozen=True)
class Archive:
    """Behaviors of earlier centers, shape (n, size)."""

    behaviors: Behaviors

    def __len__(self) -> int:
        return len(self.behaviors)

    def with_one(self, behavior: Behaviors) -> Archive:
        """Return the archive with ``behavior``, shape (size,), added; skip one that is not finite."""
        self._check_size(len(behavior))
        if not np.isfinite(behavior).all():
            return self
        before = self.behaviors.reshape(len(self), len(behavior))  # an empty archive has no size yet
        return Archive(np.concatenate([before, behavior[None]]))

    def novelty(self, behaviors: Behaviors, k: int) -> Array:
        """Return the mean Euclidean distances to the k nearest (or to all, if there are fewer), shape (n,).

        NaN for behaviors that are not finite, and 0 if the archive is empty.

        Raises:
            InputError: the size of the behaviors differs from those in the archive.
        """
        self._check_size(behaviors.shape[1])
        finite = np.isfinite(behaviors).all(axis=1)
        found = np.where(finite, 0.0, np.nan)
        if len(self) and finite.any():
            found[finite] = self._nearest(behaviors[finite], k).mean(axis=1)
        return found

    def _check_size(self, size: int) -> None:
        if len(self) and size != self.behaviors.shape[1]:
            raise InputError(
                f"`behavior`: there are behaviors of {self.behaviors.shape[1]} and {size} numbers; "
                "all must have the same size"
            )

    def _nearest(self, wanted: Behaviors, k: int) -> Array:
        """Return the distances to the k nearest, ascending, shape (n, at most k)."""
        import torch  # here, because options are parsed without torch

        from escalade.support.exact import one_torch_thread

        known, nearest = torch.from_numpy(self.behaviors).double(), []
        with one_torch_thread():
            for some in torch.split(torch.from_numpy(wanted).double(), max(1, _PAIRS // len(known))):
                # Not by matrix multiplication, which is less accurate.
                distances = torch.cdist(some, known, compute_mode="donot_use_mm_for_euclid_dist")
                nearest.append(distances.topk(min(k, len(known)), largest=False).values)
        return np.asarray(torch.cat(nearest).numpy())


@dataclass(frozen=True)
class Center:
    """Fitness and behavior of the center in its episodes of one generation."""

    fitness: float
    """Larger is better."""
    behavior: Behaviors
    """Shape (size,)."""
    generation: int = 0
    """Number of the generation, counted from 1."""
    number: int = 0
    """Number of the center, counted from 0, if there are several."""


class Novelty:
    """Archive of the centers' behaviors, and the values that replace the fitness.

    NS-ES: centered ranks of novelty. NSR-ES: the mean of those and the centered ranks of fitness. NSRA-ES:
    the mean with a ``weight`` of fitness, which grows by ``step`` whenever the center is better than all
    before, and falls by ``step`` after ``patience`` generations without improvement. Members are compared
    with the behaviors of all centers so far, including this generation's.
    """

    def __init__(self, options: NoveltyOptions) -> None:
        self.options = options
        self.archive = Archive(np.zeros((0, 0), np.float32))
        self.origins = np.zeros((0, 2), np.int64)  # generation and center number of each behavior
        self._course = (options.weight, -math.inf, 0.0)  # weight, best fitness so far, generations since

    def shaped(
        self, fitness: Array, behaviors: Behaviors, center: Center
    ) -> tuple[Array, dict[str, float | None]]:
        """Return the members' values for the strategy, shape (n,), and the row's columns about novelty.

        Larger values are better. A member with an unusable fitness or behavior has NaN, which counts as the
        worst.

        Raises:
            InputError: the size of the behaviors differs from earlier ones.
            EnvironmentFailure: no behavior is finite.
        """
        novelty = self.archive.with_one(center.behavior).novelty(behaviors, self.options.k)
        if not np.isfinite(novelty).any():
            raise EnvironmentFailure(
                "`behavior`: every member's holds a NaN or an infinity, so no novelty can be computed; "
                "return finite numbers"
            )
        weight = {"ns": 0.0, "nsr": 0.5}.get(self.options.method, self._after(center)[0])
        ranks = [centered_ranks(finite_fitness(part)[0]) for part in (fitness, novelty)]
        combined = weight * ranks[0] + (1 - weight) * ranks[1]
        (own,) = self.archive.novelty(center.behavior[None], self.options.k)
        known = len(self.archive) > 0 and math.isfinite(own)
        numbers = [float(np.nanmean(novelty)), float(own) if known else None]
        if self.options.method == "nsra":
            numbers.append(weight)
        values = np.where(usable(fitness) & usable(novelty), combined, np.nan)
        return values, dict(zip(self.options.columns, numbers, strict=False))

    def learn(self, center: Center) -> None:
        """Add the center of a finished generation to the archive, and adapt the weight."""
        before, self._course = len(self.archive), self._after(center)
        self.archive = self.archive.with_one(center.behavior)
        if len(self.archive) > before:
            self.origins = np.concatenate([self.origins, [[center.generation, center.number]]])

    def draw(self, centers: int, generation: int, seed: int) -> int:
        """Return the number of the center that moves next, after ``generation`` generations.

        First each center moves once, in turn. After that a center is drawn with a probability proportional to
        the novelty of its last behavior, or uniformly if every novelty is 0. A center without a finite
        behavior has the mean novelty of the others. The archive contains the behavior itself at distance
        0, so at least two neighbors are used.
        """
        if generation < centers:
            return generation
        novelty, k = np.full(centers, np.nan), max(self.options.k, 2)
        for number in range(centers):
            last = np.flatnonzero(self.origins[:, 1] == number)[-1:]
            if len(last):
                novelty[number] = self.archive.novelty(self.archive.behaviors[last], k)[0]
        known = np.isfinite(novelty)
        novelty[~known] = novelty[known].mean() if known.any() else 0.0
        reached = np.cumsum(novelty if novelty.any() else np.ones(centers))
        chance = int(hash64(seed, int(Stream.CENTER), generation) >> np.uint64(11)) * 2.0**-53
        return min(int(np.searchsorted(reached, chance * reached[-1], side="right")), centers - 1)

    def _after(self, center: Center) -> tuple[float, float, float]:
        """Return weight, best fitness and generations since, updated with this generation's center."""
        weight, best, waited = self._course
        if usable_number(center.fitness) and center.fitness > best:
            first = best == -math.inf
            return (weight if first else min(1.0, weight + self.options.step)), center.fitness, 0.0
        if waited + 1 < self.options.patience:
            return weight, best, waited + 1
        return max(0.0, weight - self.options.step), best, 0.0

    def tensors(self) -> Tensors:
        """Return the state to save."""
        course = np.array(self._course)
        return {_ARCHIVE: self.archive.behaviors, _ORIGINS: self.origins, _COURSE: course}

    def load(self, tensors: Tensors) -> None:
        """Load the state from :meth:`tensors`."""
        archive, self.origins = read_archive(tensors)
        weight, best, waited = map(float, tensors[_COURSE])
        self.archive, self._course = Archive(archive), (weight, best, waited)


def read_archive(tensors: Tensors) -> tuple[Behaviors, NDArray[np.int64]]:
    """Return a saved archive: behaviors, shape (n, size), and their generations and centers, (n, 2)."""
    return tensors[_ARCHIVE], tensors[_ORIGINS]
