"""Suggestions for a run, derived from its episodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from escalade.config.options import Config
from escalade.rollout.episodes import EpisodeJob, Episodes
from escalade.strategies.shaping import usable_number
from escalade.training.objective import Evaluation
from escalade.training.parts import Parts

Array = NDArray[np.float64]

_GENERATIONS = 20
"""Consecutive generations before the hint is printed."""
_EXPLAINED = 0.98
"""Minimum share of the variance of returns that episode length must explain."""
_LASTS = 0.9
"""Minimum length of the unperturbed policy's episodes, as a share of the longest possible episode."""
_BETTER = 0.02
"""Minimum improvement of an evaluation, relative to the best, that counts as progress."""


class Hints:
    """All suggestions for a run of a policy."""

    def __init__(self, config: Config, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._survival = SurvivalHint(parts.environment.max_episode_steps)

    def after(
        self, job: EpisodeJob, episodes: Episodes, trained: Episodes, evaluation: Evaluation | None
    ) -> dict[str, str]:
        """Return suggestions after a generation, by kind.

        Args:
            job: The generation's first job.
            episodes: Episodes of the job, ending with those of the evaluation.
            trained: All episodes of members.
            evaluation: Evaluation of the unperturbed policy, if there was one.
        """
        found = {"limit": self._limit_hint(job, episodes) if self._parts.unlimited else None}
        if self._parts.reward is None:  # else the user has already chosen a reward
            if evaluation is not None:
                self._survival.evaluated(evaluation.mean, evaluation.env_steps / len(evaluation.returns))
            found["hint"] = self._survival.look(trained.returns, trained.lengths)
        return {kind: text for kind, text in found.items() if text is not None}

    def _limit_hint(self, job: EpisodeJob, episodes: Episodes) -> str | None:
        """Return a hint about the default step limits, if episodes reached them."""
        cap, limit = self._config.cutoff, self._config.max_episode_steps or 0
        limits = np.where(np.arange(job.items) < job.training_items, job.cap or limit, limit)
        cut = int((episodes.lengths >= limits).sum())
        if cut == 0:
            return None
        return (
            f"{self._config.env} has no step limit, and {cut} of {job.items} episodes were cut: training "
            f"uses `cutoff={cap}`, and evaluations `max_episode_steps={limit}`; set these to change it"
        )


class SurvivalHint:
    """Detects a run that is stuck because of a survival bonus.

    Its policy survives until the end of episodes, often by doing nothing, and does not improve. The members'
    returns follow the lengths of their episodes. There is no hint if every step has the same reward, as in
    CartPole, because survival is then the task. The state is not saved: a resumed run starts anew.

    Args:
        limit: Step limit of episodes, or None without one.
    """

    def __init__(self, limit: int | None) -> None:
        self._longest = _LASTS * limit if limit else np.inf
        self._lasts = False
        self._generations = 0
        self._best = -np.inf

    def evaluated(self, mean: float, length: float) -> None:
        """Record an evaluation's mean return and the mean length of its episodes."""
        self._lasts = length >= self._longest
        if not usable_number(mean):
            return
        if not mean <= self._best + _BETTER * abs(self._best):  # NaN at first, so that any mean is better
            self._best, self._generations = mean, 0

    def look(self, returns: Array, lengths: NDArray[np.int64]) -> str | None:
        """Return a hint after a generation, or None.

        Args:
            returns: Returns of the members' episodes, shape (n,).
            lengths: Lengths of these episodes in steps, shape (n,).
        """
        bonus = _bonus(returns, lengths.astype(np.float64)) if self._lasts else None
        self._generations = 0 if bonus is None else self._generations + 1
        if bonus is None or self._generations < _GENERATIONS:
            return None
        return (
            f"for {_GENERATIONS} generations returns have followed episode lengths, at {bonus:.2g} per "
            "step, and evaluations have not improved: a survival bonus may hide the rest of the reward; "
            f"`reward=shift={bonus:.2g}` subtracts it in training"
        )


def _bonus(returns: Array, lengths: Array) -> float | None:
    """Return the reward per step if episode length explains the returns, or None if it does not."""
    if not np.isfinite(returns).all() or np.ptp(lengths) == 0:
        return None
    longer, more = lengths - lengths.mean(), returns - returns.mean()
    paid = float(longer @ more / (longer @ longer))
    rest, all_of_it = float(((more - paid * longer) ** 2).sum()), float((more**2).sum())
    if paid <= 0 or rest > (1 - _EXPLAINED) * all_of_it:
        return None
    constant = np.allclose(returns, paid * lengths, rtol=1e-6)  # every step has the same reward
    return None if constant else paid
