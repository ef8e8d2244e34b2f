"""Suggestions that follow from the episodes of a run."""

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
"""Generations in a row before the hint is given."""
_EXPLAINED = 0.98
"""From this share of the variance of returns on, episode length explains them."""
_LASTS = 0.9
"""The share of the longest possible episode from which the unperturbed policy counts as one that lasts."""
_BETTER = 0.02
"""The least improvement of an evaluation, relative to the best, that counts as progress."""


class Hints:
    """All suggestions of a run of a policy."""

    def __init__(self, config: Config, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._survival = SurvivalHint(parts.environment.max_episode_steps)

    def after(
        self, job: EpisodeJob, episodes: Episodes, trained: Episodes, evaluation: Evaluation | None
    ) -> dict[str, str]:
        """Return suggestions after a generation, by kind.

        Args:
            job: the generation's first job.
            episodes: its episodes, those of the evaluation at the end.
            trained: all episodes of members.
            evaluation: of the unperturbed policy, if there was one.
        """
        found = {"limit": self._cut(job, episodes) if self._parts.unlimited else None}
        if self._parts.reward is None:  # else the user knows of rewards, and has chosen
            if evaluation is not None:
                self._survival.evaluated(evaluation.mean, evaluation.env_steps / len(evaluation.returns))
            found["hint"] = self._survival.look(trained.returns, trained.lengths)
        return {kind: text for kind, text in found.items() if text is not None}

    def _cut(self, job: EpisodeJob, episodes: Episodes) -> str | None:
        """Name the limits chosen by ``limit_episodes``, if episodes reached them."""
        cap, limit = self._config.cutoff, self._config.max_episode_steps or 0
        limits = np.where(np.arange(job.items) < job.training_items, job.cap or limit, limit)
        cut = int((episodes.lengths >= limits).sum())
        if cut == 0:
            return None
        return (
            f"{self._config.env} has no limit of steps, and {cut} of {job.items} episodes were cut: training "
            f"uses `cutoff={cap}`, and evaluations `max_episode_steps={limit}`; set these to change it"
        )


class SurvivalHint:
    """Finds a run that a bonus for survival holds.

    Its policy lasts to the end of episodes, often by doing nothing, and gets no better; its members' returns
    follow the lengths of their episodes. Where every step pays the same, as in CartPole, to last is the task,
    and nothing is said. What it has seen is not part of a checkpoint: a resumed run looks anew.

    Args:
        limit: steps after which episodes end; None where nothing limits them.
    """

    def __init__(self, limit: int | None) -> None:
        self._longest = _LASTS * limit if limit else np.inf
        self._lasts = False
        self._generations = 0
        self._best = -np.inf

    def evaluated(self, mean: float, length: float) -> None:
        """Take note of an evaluation: its mean return, and the mean length of its episodes."""
        self._lasts = length >= self._longest
        if not usable_number(mean):
            return
        if not mean <= self._best + _BETTER * abs(self._best):  # at first that is NaN, and any is better
            self._best, self._generations = mean, 0

    def look(self, returns: Array, lengths: NDArray[np.int64]) -> str | None:
        """Return what there is to say after a generation.

        Args:
            returns: of the members' episodes, shape (n,).
            lengths: of those, in steps, shape (n,).
        """
        bonus = _bonus(returns, lengths.astype(np.float64)) if self._lasts else None
        self._generations = 0 if bonus is None else self._generations + 1
        if bonus is None or self._generations < _GENERATIONS:
            return None
        return (
            f"for {_GENERATIONS} generations returns have followed the length of episodes, at {bonus:.2g} a "
            "step, and evaluations stand still: a bonus for survival may hide the rest of the reward; "
            f"`reward=shift={bonus:.2g}` takes it off in training"
        )


def _bonus(returns: Array, lengths: Array) -> float | None:
    """The pay of one step more, where the returns follow that and little else; None where they do not."""
    if not np.isfinite(returns).all() or np.ptp(lengths) == 0:
        return None
    longer, more = lengths - lengths.mean(), returns - returns.mean()
    paid = float(longer @ more / (longer @ longer))
    rest, all_of_it = float(((more - paid * longer) ** 2).sum()), float((more**2).sum())
    if paid <= 0 or rest > (1 - _EXPLAINED) * all_of_it:
        return None
    alike = np.allclose(returns, paid * lengths, rtol=1e-6)  # each step pays the same
    return None if alike else paid
