"""A generation of a batched world, divided into batches of episodes that start and step together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.engines import Engine
from escalade.engines.results import Results
from escalade.errors import InputError
from escalade.perturbation import Stream, seeds
from escalade.rollout.episodes import EpisodeJob, Episodes

Numbers = NDArray[np.int64]
Found = list[tuple[NDArray[np.intp], NDArray[np.void]]]
"""Results of a batch: indices into it, and the records of the episodes at these indices."""


@dataclass(frozen=True)
class Batches:
    """A job for an engine, whose items are batches of ``job``'s episodes.

    All episodes of a mirrored pair are in one batch. Evaluations fill the last batch of members, then batches
    of their own.

    Args:
        job: The episodes of a generation.
        rows: Maximum number of episodes in a batch: the world's ``num_envs``.
    """

    job: EpisodeJob
    rows: int

    @cached_property
    def _members(self) -> int:
        """Number of episodes in a full batch of members.

        Raises:
            InputError: A batch is too small for a mirrored pair.
        """
        population = self.job.population
        pair = self.job.episodes * (2 if population is not None and population.antithetic else 1)
        if self.job.training_items and self.rows < pair:
            raise InputError(
                f"`num_envs` {self.rows} is too small: all {pair} episodes of a pair of members start "
                f"together; set it to at least {pair}"
            )
        return self.rows // pair * pair

    @cached_property
    def _ends(self) -> list[int]:
        """The end of each batch: the index of its last item, plus 1."""
        trained = self.job.training_items
        ends = [*range(self._members, trained, self._members), trained] if trained else [0]
        begun = ends[-2] if len(ends) > 1 else 0
        ends[-1] = min(self.job.items, begun + self.rows)
        while ends[-1] < self.job.items:
            ends.append(min(self.job.items, ends[-1] + self.rows))
        return ends

    def __len__(self) -> int:
        return len(self._ends)

    def items(self, batch: int) -> Numbers:
        """Return the job's items in a batch, shape (n,), with n at most ``rows``."""
        return np.arange(self._ends[batch - 1] if batch else 0, self._ends[batch])

    def seed(self, batch: int) -> int:
        """Return the seed of a batch, for worlds whose episodes share one generator."""
        job = self.job
        trains = int(self.items(batch)[0]) < job.training_items
        stream, first = (
            (Stream.EPISODE, job.first_member) if trains else (job.evaluation_stream, job.first_evaluation)
        )
        return int(seeds(job.seed, stream, job.generation, first, batch))

    def describe(self, batch: int) -> str:
        """Describe a batch in an error message."""
        items = self.items(batch)
        return f"batch {batch} of generation {self.job.generation + 1} ({len(items)} episodes)"

    def run(self, engine: Engine) -> Episodes:
        """Run all batches on ``engine``, and return the episodes in the job's order."""
        found, episodes = engine.run(self, len(self)), Results(self.job.items)
        for batch, parts in enumerate(found.in_order()):
            items = self.items(batch)
            for indices, records in parts:
                episodes.put_many(items[indices], records)
        return Episodes.of(episodes)


def batch_steps(results: Any) -> int:
    """Count the environment steps in the results of batches."""
    return sum(int(records["length"].sum()) for found in results for _, records in found)
