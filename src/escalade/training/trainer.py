"""The generation loop: Salimans et al. 2017, algorithm 2, with a checkpoint after it."""

from __future__ import annotations

import copy
import hashlib
import math
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escalade.config.conversion import from_values
from escalade.config.options import Config
from escalade.engines import Engine
from escalade.errors import EnvironmentFailure, InputError
from escalade.perturbation import Stream
from escalade.policies.networks import frozen_state
from escalade.policies.normalizer import Normalization, Normalizer
from escalade.policies.policy import Policy
from escalade.recorders import Recorder, Row
from escalade.rollout import cutoff
from escalade.rollout.episodes import Episodes, Job
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Tensors, under
from escalade.strategies.saving import load_strategy, save_strategy
from escalade.strategies.shaping import usable
from escalade.support.interrupts import Interrupts
from escalade.training.parts import Parts, make_strategy

CONFIRMATION_EPISODES = 100
_FIXED = "fixed."
_PACKAGES = ("numpy", "torch", "gymnasium", "envpool", "mujoco", "Box2D")
_CHECKPOINT_SHARE = 50  # a checkpoint may take one part in this of the time since the last


@dataclass
class Progress:
    """How far a run has come: the part of its state that is numbers."""

    generation: int = 0
    episodes: int = 0
    env_steps: int = 0
    seconds: float = 0.0
    best_return: float | None = None
    best_generation: int | None = None
    eval_return_mean: float | None = None
    eval_return_std: float | None = None
    eval_episodes: int = 0
    solved: bool = False
    solving: dict[str, float] = field(default_factory=dict)
    """What the generation that met the target added to the counts above, though it moved nothing."""
    cap: int | None = None
    notes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """A generation as callbacks see it; nothing in it can move the run."""

    row: Row
    config: Config
    center: NDArray[np.float32]
    """The unperturbed policy's parameters after the generation, shape (dimension,), read-only."""
    normalization: Normalization | None
    policy: Callable[[], Policy]
    """Makes an nn.Module of that policy; it is the caller's own."""


Callback = Callable[[View], bool | None]
"""Called after every generation; True stops the run."""


class Trainer:
    """Trains one policy in one run folder, from wherever the folder's state stands."""

    def __init__(
        self,
        config: Config,
        parts: Parts,
        engine: Engine,
        folder: RunFolder,
        recorders: Sequence[Recorder] = (),
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.config = config
        self.parts = parts
        self.engine = engine
        self.folder = folder
        self.recorders = recorders
        self.callbacks = callbacks
        self.strategy = make_strategy(config, parts.start, parts.table)
        self.normalizer = Normalizer(len(parts.policy.observation_mean))
        self.cutoff = cutoff.parse(config.cutoff)
        self.progress = Progress(cap=self.cutoff.start)
        self.interrupts = Interrupts()
        self._saved_at = -1
        self._save_seconds = 0.0
        self._last_save = time.monotonic()

    def run(self) -> dict[str, Any]:
        """Train until something says stop; the summary, which is also in summary.json."""
        with self.interrupts:
            self._save_if_due(force=self.progress.generation == 0)
            reason = self._loop()
            # The state is that of a whole generation: what was in flight is run again on resume.
            self._save_if_due(force=True)
            if reason not in ("solved", "interrupted"):
                self._evaluate_finally()
            summary = self.summary(reason)
            self.save_policy()
            self.folder.write_summary(summary)
        return summary

    def _loop(self) -> str:
        """Algorithm 2; why it ended."""
        while (reason := self._reason_to_stop()) is None:
            began = time.monotonic()
            normalization = self.normalization
            job = self._job(
                normalization,
                population=self.strategy.sample(),
                episodes=self.config.episodes_per_member,
                cap=self.progress.cap,
            )
            try:
                trained, evaluated = self._generation(job)
                self.progress.solved = self._evaluation(evaluated, normalization)
            except KeyboardInterrupt:
                return "interrupted"
            scales = self.strategy.sigma, self.strategy.lr  # this generation's: tell moves them on
            if not self.progress.solved:  # a policy that met its target stays as it was confirmed
                self._report_nonfinite(job, trained)
                self.strategy.tell(trained.returns.reshape(-1, job.episodes).mean(axis=1))
                self._merge_moments(trained, normalization)
                self.progress.cap = self.cutoff.after(job.cap, trained.lengths.tolist())
            self._count(trained, began)
            row = self._record(trained, evaluated, began, scales)
            self.progress.generation += not self.progress.solved
            self._save_if_due()
            if self._call_back(row) and not self.progress.solved:
                return "callback"
        return reason

    def _call_back(self, row: Row) -> bool:
        """Show the generation to every callback; whether one wants the run to stop."""
        if not self.callbacks:
            return False
        center = self.center
        center.flags.writeable = False
        view = View(row, self.config, center, self.normalization, self._policy)
        answers = [callback(view) for callback in self.callbacks]
        return any(answers)

    def _policy(self) -> Policy:
        policy = copy.deepcopy(self.parts.policy).eval()
        policy.set(self.center, self.normalization)
        return policy

    def _generation(self, job: Job) -> tuple[Episodes, Episodes]:
        """Run a generation, grown until it is large enough: the members' episodes, and the evaluation's."""
        episodes = self._roll_out(job)
        trained, evaluated = episodes[: job.training_items], episodes[job.training_items :]
        while self._too_small(trained):
            before = self.strategy.population_size
            self.strategy.grow()
            more = replace(job, population=self.strategy.sample(), first=before, evaluations=0)
            trained = trained + self._roll_out(more)
        return trained, evaluated

    def _too_small(self, trained: Episodes) -> bool:
        config, members = self.config, self.strategy.population_size
        if config.max_population is not None and members + config.population > config.max_population:
            return False
        return len(trained.lengths) < (config.min_episodes or 0) or int(trained.lengths.sum()) < (
            config.min_env_steps or 0
        )

    def _roll_out(self, job: Job) -> Episodes:
        """Run a job's episodes. Nothing is half done meanwhile: this is where Ctrl-C takes hold."""
        with self.interrupts.allowed():
            return Episodes.of(self.engine.run(job, job.items))

    @property
    def normalization(self) -> Normalization | None:
        """What this generation's observations are normalised by."""
        return self.normalizer.freeze() if self.config.normalize_observations else None

    @property
    def center(self) -> NDArray[np.float32]:
        """The unperturbed policy's parameters, shape (dimension,)."""
        return np.asarray(self.strategy.center.detach().numpy().copy())

    def _job(self, normalization: Normalization | None, **what: Any) -> Job:
        due = self.progress.generation % self.config.eval_every == 0
        what = {"evaluations": self.config.eval_episodes if due else 0} | what
        return Job(
            seed=self.config.seed,
            generation=self.progress.generation,
            center=self.center if what["evaluations"] else None,
            normalization=normalization,
            **what,
        )

    def _reason_to_stop(self) -> str | None:
        done, config = self.progress, self.config
        if self.interrupts.requested:
            return "interrupted"
        if done.solved and config.target_return is not None:
            return "solved"
        if config.generations is not None and done.generation >= config.generations:
            return "generations"
        if config.env_steps is not None and done.env_steps >= config.env_steps:
            return "env_steps"
        if config.seconds is not None and done.seconds >= config.seconds:
            return "seconds"
        return None

    def _evaluation(self, evaluated: Episodes, normalization: Normalization | None) -> bool:
        """Take an evaluation in; whether it met the target and a fresh one confirmed it."""
        if len(evaluated.returns) == 0:
            return False
        mean = self._remember(evaluated)
        best = self.progress.best_return
        if math.isfinite(mean) and (best is None or mean > best):
            self.progress.best_return, self.progress.best_generation = mean, self.progress.generation
            self.save_policy(best=True)
        target = self.config.target_return
        if target is None or not mean >= target:
            return False
        job = self._job(
            normalization, evaluations=CONFIRMATION_EPISODES, evaluation_stream=Stream.CONFIRMATION
        )
        confirmed = self._remember(self._roll_out(job))
        if not confirmed >= target:
            self._note(
                f"generation {self.progress.generation + 1}: an evaluation of {mean:.1f} was luck: "
                f"{CONFIRMATION_EPISODES} fresh episodes give {confirmed:.1f}"
            )
            return False
        return True

    def _evaluate_finally(self) -> None:
        """Evaluate the centre as the run leaves it."""
        job = self._job(
            self.normalization,
            evaluations=self.config.eval_episodes,
            evaluation_stream=Stream.CONFIRMATION,
        )
        with suppress(KeyboardInterrupt):  # the summary then holds the last evaluation there was
            self._remember(self._roll_out(job))

    def _remember(self, evaluated: Episodes) -> float:
        mean = float(evaluated.returns.mean())
        self.progress.eval_return_mean = mean
        self.progress.eval_return_std = float(evaluated.returns.std())
        self.progress.eval_episodes = len(evaluated.returns)
        return mean

    def _merge_moments(self, trained: Episodes, normalization: Normalization | None) -> None:
        if normalization is None:
            return
        self.normalizer.merge_episodes(trained.lengths, normalization.mean, trained.moments)

    def _count(self, trained: Episodes, began: float) -> None:
        done = self.progress
        steps, seconds = int(trained.lengths.sum()), time.monotonic() - began
        done.episodes += len(trained.lengths)
        done.env_steps += steps
        done.seconds += seconds
        if done.solved:
            done.solving = {"episodes": len(trained.lengths), "env_steps": steps, "seconds": seconds}

    def _record(
        self, trained: Episodes, evaluated: Episodes, began: float, scales: tuple[float, float]
    ) -> Row:
        done, strategy = self.progress, self.strategy
        returns = trained.returns[usable(trained.returns)]
        spread = returns if len(returns) else np.full(1, np.nan)
        evaluation = float(evaluated.returns.mean()) if len(evaluated.returns) else None
        rank = None
        if evaluation is not None:
            means = trained.returns.reshape(-1, self.config.episodes_per_member).mean(axis=1)
            rank = 1 + int((means > evaluation).sum())
            if not done.solved:
                self._explain_rank(means, evaluation)
        row = Row(
            generation=done.generation + 1,
            episodes=done.episodes,
            env_steps=done.env_steps,
            seconds=round(done.seconds, 4),
            return_mean=float(spread.mean()),
            return_std=float(spread.std()),
            return_min=float(spread.min()),
            return_max=float(spread.max()),
            episode_length_mean=float(trained.lengths.mean()),
            eval_return_mean=evaluation,
            unperturbed_rank=rank,
            sigma=scales[0],
            lr=scales[1],
            update_ratio=0.0 if done.solved else strategy.update_ratio,
            steps_per_second=round(int(trained.lengths.sum()) / max(time.monotonic() - began, 1e-9), 1),
        )
        for recorder in self.recorders:
            recorder.generation(row)
        return row

    def _note(self, text: str, once: str | None = None) -> None:
        """Say something; of a kind that could repeat itself, only the 1st, 10th, 100th time."""
        if once is not None:
            count = self.progress.notes[once] = self.progress.notes.get(once, 0) + 1
            if count not in (1, 10, 100, 1000, 10_000):
                return
            text += f" ({count} times so far)" if count > 1 else ""
        for recorder in self.recorders:
            recorder.note(text)

    def _explain_rank(self, fitness: NDArray[np.float64], evaluation: float) -> None:
        members = len(fitness)
        if (fitness == fitness[0]).all():
            self._note(
                f"generation {self.progress.generation + 1}: all members have the same fitness, so there is "
                "nothing to learn from: a larger --sigma or longer episodes may tell them apart",
                once="equal",
            )
        elif members > 2 and (fitness < evaluation).all():
            self._note(
                f"generation {self.progress.generation + 1}: the unperturbed policy beats every member (rank "
                f"1 of {members + 1}): noise only harms it, so the gradient is uninformative; a smaller "
                "--sigma may help",
                once="rank",
            )

    def _report_nonfinite(self, job: Job, trained: Episodes) -> None:
        bad = np.flatnonzero(~usable(trained.returns))
        if len(bad) == 0:
            return
        if len(bad) == len(trained.returns):
            raise EnvironmentFailure(
                f"environment {self.config.env} returned {trained.returns[0]} or the like in all {len(bad)} "
                f"episodes of generation {job.generation + 1}: there is nothing to learn from"
            )
        whole = replace(job, population=self.strategy.sample())  # which may have grown
        seed = int(whole.episode_seeds(bad[:1])[0])
        others = len(set((bad // job.episodes).tolist())) - 1
        self._note(
            f"generation {job.generation + 1}: member {whole.member(int(bad[0]))} returned "
            f"{trained.returns[bad[0]]} (episode seed {seed})"
            + (f", and {others} more members did likewise" if others else "")
            + "; it counts as the worst of its generation",
            once="nonfinite",
        )

    def _save_if_due(self, force: bool = False) -> None:
        """Save, unless it would take more than its share of the time."""
        done = self.progress
        kept = self.config.snapshot_every and done.generation % self.config.snapshot_every == 0
        due = time.monotonic() - self._last_save >= _CHECKPOINT_SHARE * self._save_seconds
        news = done.generation != self._saved_at or done.solved
        if not news or not (force or due or kept):
            return
        began = time.monotonic()
        self.folder.checkpoints.save(done.generation, *self.state(), self.config.snapshot_every)
        self._saved_at, self._last_save = done.generation, time.monotonic()
        self._save_seconds = self._last_save - began

    def state(self) -> tuple[Tensors, State]:
        """Everything that :meth:`load` needs to go on bit for bit."""
        tensors, numbers = save_strategy(self.strategy)
        tensors |= self.normalizer.tensors()
        policy = self.parts.policy
        tensors |= {_FIXED + name: value for name, value in frozen_state(policy.network).items()}
        config = {name: value for name, value in asdict(self.config).items() if value is not None}
        return tensors, {
            "config": config,
            "strategy": numbers,
            "progress": asdict(self.progress),
            "own_network": not policy.architecture and ":" not in self.config.policy,
            "versions": versions(),
        }

    def load(self, tensors: Tensors, state: State) -> None:
        """Take over a checkpoint.

        Raises:
            InputError: it belongs to another policy or strategy.
        """
        load_strategy(self.strategy, tensors, state["strategy"])
        if tensors["normalizer.mean"].shape != self.normalizer.mean.shape:
            raise InputError("the checkpoint's observations have another size than the environment's")
        self.normalizer = Normalizer.restored(tensors)
        self.progress = Progress(**state["progress"])
        self._saved_at = self.progress.generation
        if state["versions"] != versions():
            self._note(
                f"the run was saved under {state['versions']}, this is {versions()}: last bits may differ"
            )

    def save_policy(self, best: bool = False) -> None:
        """Write the unperturbed policy as it stands."""
        policy = self.parts.policy
        policy.set(self.center, self.normalization)
        policy.save(self.folder.best if best else self.folder.policy)

    def params_sha256(self) -> str:
        """Digest of the centre and the normaliser: what "the same bits" means."""
        moments = self.normalizer
        total = hashlib.sha256(self.center.tobytes())
        for part in (np.array([moments.count]), moments.mean, moments.squares):
            total.update(part.astype(np.float64).tobytes())
        return total.hexdigest()

    def summary(self, reason: str) -> dict[str, Any]:
        """What summary.json holds."""
        done, config = self.progress, self.config
        return {
            "env": config.env,
            "strategy": config.strategy,
            "seed": config.seed,
            "generations": done.generation,
            "episodes": done.episodes,
            "env_steps": done.env_steps,
            "seconds": round(done.seconds, 3),
            "steps_per_second": round(done.env_steps / done.seconds, 1) if done.seconds else 0.0,
            "eval_return_mean": done.eval_return_mean,
            "eval_return_std": done.eval_return_std,
            "eval_episodes": done.eval_episodes,
            "best_eval_return": done.best_return,
            "best_generation": done.best_generation,
            "target_return": config.target_return,
            "solved": done.solved,
            "stop_reason": reason,
            "params_sha256": self.params_sha256(),
            "backend": config.backend,
            "workers": config.worker_count,
            "versions": versions(),
        }


def config_of(state: State) -> Config:
    """The config that a checkpoint records."""
    return Config(**from_values(state["config"], "checkpoint"))


def fixed_of(tensors: Tensors) -> Tensors:
    """The network's frozen parameters and buffers in a checkpoint, by name."""
    return under(_FIXED, tensors)


def reopen(state: State) -> None:
    """Let a run that was solved go on: its last generation, which moved nothing, is run again."""
    progress = state["progress"]
    for name, counted in progress["solving"].items():
        progress[name] -= counted
    progress |= {"solving": {}, "solved": False}


def versions() -> dict[str, str]:
    """Of everything that can change a last bit."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
