"""Training a policy: a member's fitness is the mean return of its episodes in an environment."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from escalade.config.options import Config
from escalade.engines import Engine
from escalade.envs import probe_purity
from escalade.perturbation import CenterPopulation, Stream
from escalade.policies.networks import frozen_state
from escalade.policies.normalizer import Normalization, Normalizer
from escalade.policies.policy import Policy
from escalade.policies.population.layout import copy_module
from escalade.policies.population.torch_network import TorchNetwork
from escalade.recorders import DETERMINISTIC, info_columns
from escalade.rollout.episodes import EpisodeJob, Episodes, check_known, mean_known
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Tensors
from escalade.strategies import Strategy
from escalade.strategies.novelty import CENTER, Center, Novelty
from escalade.strategies.shaping import usable, within_pairs
from escalade.support.interrupts import Interrupts
from escalade.support.machine import BY_PLACE, rounds_by_place
from escalade.training.center_states import Best, CenterStates, best_of, best_tensors
from escalade.training.hints import Hints
from escalade.training.objective import Array, Evaluation, Objective, Outcome, copy_of_center
from escalade.training.parts import Parts
from escalade.training.progress import Counts
from escalade.training.score import make_score

CONFIRMATION_EPISODES = 100
TRIAL_EPISODES = 20
"""Episodes of a confirmation that are run first."""
FROZEN = "frozen."
"""Prefix in a checkpoint of the network's frozen parameters and buffers."""


@dataclass(eq=False)
class PolicyObjective(Objective):
    """Runs the episodes of members and center, and updates the normalizer and the step cap."""

    config: Config
    parts: Parts
    engine: Engine
    interrupts: Interrupts
    folder: RunFolder | None = None
    """Folder for policies, or None to write none."""

    direction = 1.0
    subject = "policy"
    unit = "episodes"
    counts_steps = True

    def __post_init__(self) -> None:
        config, parts = self.config, self.parts
        first = parts.normalizer or Normalizer(len(parts.policy.observation_mean))
        cap = None if config.cutoff is None else config.cutoff.start
        self.centers = CenterStates(first, 1 + len(parts.further_starts), cap)
        self._hints = Hints(config, parts)
        self.score = make_score(config)
        self.novelty = None if config.novelty is None else Novelty(config.novelty)
        self._archived = 0 if self.novelty is None else config.episodes_per_member
        self._along = config.cutoff is not None and config.cutoff.along
        self.tie_advice = parts.policy.actions.tie_advice
        self.forgives = "on_error=worst" if config.on_error == "worst" else None
        self._best: Best | None = None
        self._best_is_new = False

    def measure(self, strategy: Strategy, *, evaluate: bool) -> Outcome:
        """Run a generation's episodes.

        Add populations until the config's minimum size is reached. In a novelty search, the center plays as
        many episodes as a member in each generation, the first of the evaluation's. It plays one episode if
        members start in states of the center's episode.
        """
        if self.centers.count > 1 and self.novelty is not None:
            drawn = self.novelty.draw(self.centers.count, strategy.generation, self.config.seed)
            self.centers.draw(strategy, drawn)
        if isinstance(self.config.population, str):
            strategy.resize(self.config.members(strategy.generation))
        size_before = strategy.population_size
        evaluations = self.config.eval_episodes if evaluate else 0
        best = evaluations if self.parts.policy.actions.draws else 0
        job = self._job(
            strategy,
            population=strategy.sample(),
            episodes=self.config.episodes_per_member,
            cap=self.centers.cap,
            along=self._along,
            evaluations=max(evaluations, self._archived, int(self._along)) + best,
            best_evaluations=best,
        )
        episodes = self._run(job)
        trained, center = episodes[: job.training_items], episodes[job.training_items : job.drawn_items]
        evaluated = self._failed_as_worst(center[:evaluations])
        while self._too_small(trained) and usable(trained.scores).any():  # else the run ends
            before = strategy.population_size
            strategy.resize(before + size_before)
            more: dict[str, Any] = {"population": strategy.sample(), "first_member": before}
            trained = trained + self._run(replace(job, **more, evaluations=0, best_evaluations=0))
        evaluation = self._evaluation(strategy, center[:evaluations]) if evaluate else None
        info = self._info(strategy, trained.infos, evaluated.infos)  # raises for a key that no info has
        fitness, size = self.score.fitness(strategy.sample(), trained), strategy.population_size
        behaviors = None if self.parts.behavior is None else trained.mean_behaviors(size)
        shaped = within_pairs(fitness) if job.pairs_differ else None
        seen, columns = None, dict[str, float | None]()
        further_steps = int(episodes.lengths[job.training_items + evaluations : job.items].sum())
        if self.parts.policy.actions.draws:
            deterministic = self._failed_as_worst(episodes[job.drawn_items : job.items]).returns
            columns[DETERMINISTIC] = float(deterministic.mean()) if best else None
        if self.novelty is not None and behaviors is not None and usable(trained.scores).any():
            seen = self._measured_center(strategy, center[: self._archived])
            shaped, of_novelty = self.novelty.shaped(fitness, behaviors, seen)
            columns |= of_novelty
            if self.centers.count > 1:
                columns[CENTER] = seen.number
        return Outcome(
            fitness=fitness,
            shaped=shaped,
            returns=trained.returns,
            scores=trained.scores,
            evaluation=evaluation,
            comparable=not evaluate or self._comparable(job, evaluated),
            raised=trained.raised,
            hints=self._hints.after(job, episodes, trained, evaluation),
            env_steps=int(trained.lengths.sum()),
            info=(*info, *columns.items()),
            behaviors=behaviors,
            further=Counts(eval_episodes=job.evaluations - evaluations, eval_steps=further_steps),
            details=(job, trained, evaluated if evaluate else self._failed_as_worst(center), seen),
        )

    def confirm(self, strategy: Strategy, evaluation: Evaluation) -> Evaluation:
        """Evaluate the center in fresh episodes: in 20, then in 80 more if the target is still possible.

        The target is impossible if the mean of all 100 would miss it even if each of the 80 had the best
        return seen so far. A target is never confirmed by the first 20 alone.
        """
        played = self._play(strategy, TRIAL_EPISODES)
        known, left = self._failed_as_worst(played), CONFIRMATION_EPISODES - TRIAL_EPISODES
        # Differences, because sums of returns that equal the target would be inexact.
        target = self.config.target_return or 0.0
        beyond, before = known.returns - target, evaluation.returns - target
        if beyond.sum() + left * max(beyond.max(), before.max()) >= 0:
            played = played + self._play(strategy, left, TRIAL_EPISODES)
        return self._evaluation(strategy, played)

    def evaluate(self, strategy: Strategy) -> Evaluation:
        """Evaluate the center in fresh episodes. Several centers are evaluated in the same episodes."""
        found: list[Evaluation] = []
        try:
            for number in range(self.centers.count):
                self.centers.draw(strategy, number)
                found.append(self._evaluation(strategy, self._play(strategy, self.config.eval_episodes)))
            means = np.array([evaluation.mean for evaluation in found])
            self.centers.worth = np.where(usable(means), means, np.nan)
        finally:
            self.settle(strategy)
        best = found.pop(self.centers.drawn)
        return replace(best, further=sum((other.counts for other in found), start=Counts()))

    def settle(self, strategy: Strategy) -> None:
        """With several centers, draw the best known one."""
        self.centers.draw_best(strategy)

    def learn(self, outcome: Outcome) -> None:
        """Merge the members' observations into the normalizer, and update cap, score and novelty archive."""
        job, trained, shown, center = outcome.details
        if job.normalization is not None:
            # Without episodes that failed or diverged, whose last observations may be extreme.
            seen = np.where(usable(trained.scores), trained.seen, 0)
            self.centers.normalizer.merge_episodes(seen[trained.seen > 0], trained.moments)
        if self.config.cutoff is not None:
            after = self.config.cutoff.after(job.cap, trained.lengths.tolist())
            self.centers.caps[self.centers.drawn] = after
        if outcome.evaluation is not None:
            self.score.learn(shown)
        if self.novelty is not None:
            self.novelty.learn(center)
            self.centers.record_mean(center.number, float(shown.returns.mean()))

    def reproducibility_notes(self) -> list[str]:
        """Replay an episode, and return warnings if the environment or torch break reproducibility."""
        with self.interrupts.allowed():
            note = probe_purity(self.parts.environment).note(self.config.env)
        notes = [] if note is None else [note]
        if isinstance(self.parts.policy.batched, TorchNetwork) and rounds_by_place():
            notes.append(BY_PLACE)
        return notes

    def learnt(self) -> list[Array]:
        """Return the normalizer's count, mean and sum of squares, and the score's state."""
        return [*self.centers.normalizer.tensors().values(), *self.score.tensors().values()]

    def best_of(self, strategy: Strategy, outcome: Outcome) -> float | None:
        """Return the evaluation's mean. Members' returns do not count, because they are partly luck."""
        return None if outcome.evaluation is None else outcome.evaluation.mean

    def keep_best(self, strategy: Strategy, outcome: Outcome) -> None:
        """Store the parameters in memory, for the next checkpoint."""
        self._best = copy_of_center(strategy), copy(self.centers.normalizer)
        self._best_is_new = True

    def write_best(self) -> None:
        """Write best.safetensors if the best policy changed."""
        if self.folder is not None and self._best is not None and self._best_is_new:
            center, normalizer = self._best
            self.parts.policy.set(center, self._normalization(normalizer))
            self.parts.policy.save(self.folder.best)
            self._best_is_new = False

    def describe_member(self, strategy: Strategy, outcome: Outcome, episode: int) -> str:
        """Describe a member, with the seed of its episode."""
        job, *_ = outcome.details
        whole = replace(job, population=strategy.sample())  # the population may have grown
        seed = int(whole.episode_seeds(np.array([episode]))[0])
        return f"member {whole.member(episode)} (episode seed {seed})"

    def module_maker(self, center: Tensor) -> Callable[[], Policy]:
        """Return a function that creates policies with these parameters and the current normalizer."""
        return partial(_policy_of, self.parts.policy, center, self.normalization)

    def save_module(self, strategy: Strategy) -> None:
        """Write policy.safetensors, and the folder centers if there are several."""
        if self.folder is None:
            return
        drawn = self.centers.drawn
        for number in range(self.centers.count if self.centers.count > 1 else 0):
            self.centers.draw(strategy, number)
            self._policy(strategy).save(self.folder.center(number))
        self.centers.draw(strategy, drawn)
        self._policy(strategy).save(self.folder.policy)

    def state(self) -> tuple[Tensors, State]:
        """Return normalizer, cap, best policy, frozen parameters and config."""
        policy = self.parts.policy
        frozen = {FROZEN + name: value for name, value in frozen_state(policy.network).items()}
        config = {name: value for name, value in asdict(self.config).items() if value is not None}
        learnt = self.centers.tensors() | self.score.tensors()
        if self.novelty is not None:
            learnt |= self.novelty.tensors()
        return learnt | frozen | best_tensors(self._best), {
            "config": config,
            "cap": self.centers.cap,
            **self.parts.network_facts(self.config),
        }

    def load_state(self, tensors: Tensors, state: State) -> None:
        """Restore normalizer, cap and best policy."""
        self.centers.load(tensors, state["strategy"].get("drawn", 0), state["cap"])
        self.score.load(tensors)
        if self.novelty is not None:
            self.novelty.load(tensors)
        self._best = best_of(tensors)
        self._best_is_new = True  # the file may be of a later generation, after the checkpoint

    @property
    def normalization(self) -> Normalization | None:
        """Normalization of this generation's observations."""
        return self._normalization(self.centers.normalizer)

    def _normalization(self, normalizer: Normalizer) -> Normalization | None:
        return normalizer.snapshot_if(self.config.normalize_observations, self.config.largest_observation)

    def _measured_center(self, strategy: Strategy, episodes: Episodes) -> Center:
        """Return the center's fitness and behavior in ``episodes``."""
        fitness, behavior = self._fitness_of_center(strategy, episodes), episodes.mean_behaviors(1)[0]
        return Center(fitness, behavior, strategy.generation + 1, self.centers.drawn)

    def _play(self, strategy: Strategy, episodes: int, before: int = 0) -> Episodes:
        """Run ``episodes`` of this generation's fresh episodes of the center, after the first ``before``."""
        what = {"evaluation_stream": Stream.CONFIRMATION, "first_evaluation": before}
        return self._run(self._job(strategy, evaluations=episodes, **what))

    def _failed_as_worst(self, episodes: Episodes) -> Episodes:
        """Make failed episodes count as the worst of the others, if ``on_error`` tolerates them."""
        return episodes.with_failed_as_worst() if self.forgives else episodes

    def _job(self, strategy: Strategy, *, evaluations: int, **what: Any) -> EpisodeJob:
        return EpisodeJob(
            seed=self.config.seed,
            generation=strategy.generation,
            center=copy_of_center(strategy) if evaluations else None,
            normalization=self.normalization,
            seed_sharing=self.config.episode_seeds,
            evaluations=evaluations,
            **what,
        )

    def _run(self, job: EpisodeJob) -> Episodes:
        """Run a job's episodes. Ctrl-C may interrupt here, because no state is half changed."""
        with self.interrupts.allowed():
            return self.parts.play(self.engine, job)

    def _info(self, strategy: Strategy, *infos: Array) -> list[tuple[str, float | None]]:
        """Return the means of the last infos' numbers, by column."""
        if strategy.generation == 0:
            check_known(self.parts.environment, np.concatenate(infos))
        columns = info_columns(self.config.info_keys)
        means = [mean_known(values) for part in infos for values in part.T[: len(columns) // 2]]
        return list(zip(columns, means, strict=True))

    def _comparable(self, job: EpisodeJob, evaluated: Episodes) -> bool:
        """Return True if the members' cap would not have cut the center's episodes."""
        return job.cap is None or (not job.along and bool((evaluated.lengths <= job.cap).all()))

    def _too_small(self, trained: Episodes) -> bool:
        episodes, steps = self.config.min_episodes or 0, self.config.min_env_steps or 0
        return len(trained.lengths) < episodes or int(trained.lengths.sum()) < steps

    def _policy(self, strategy: Strategy) -> Policy:
        self.parts.policy.set(copy_of_center(strategy), self.normalization)
        return self.parts.policy

    def _evaluation(self, strategy: Strategy, played: Episodes) -> Evaluation:
        episodes, steps = self._failed_as_worst(played), int(played.lengths.sum())
        fitness, failed = self._fitness_of_center(strategy, episodes), int(played.failed().sum())
        return Evaluation(episodes.returns, steps, fitness, raised=played.first_raised, failed=failed)

    def _fitness_of_center(self, strategy: Strategy, episodes: Episodes) -> float:
        center = CenterPopulation(copy_of_center(strategy))
        return float(self.score.fitness(center, episodes)[0])


def _policy_of(like: Policy, center: Tensor, normalization: Normalization | None) -> Policy:
    policy = copy_module(like).eval()
    policy.set(center.numpy(), normalization)
    return policy
