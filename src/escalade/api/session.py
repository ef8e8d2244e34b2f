"""Train, resume, evaluate and render: what the command line and the library call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from escalade.api.warm import warm_up_for
from escalade.config import presets
from escalade.config.conversion import from_values
from escalade.config.files import new_folder, read_config, write_config
from escalade.config.options import Config
from escalade.engines import Engine
from escalade.envs import settle_backend
from escalade.errors import InputError
from escalade.media.curves import plot_runs, plotting_available
from escalade.media.video import record_episode
from escalade.perturbation import Stream
from escalade.policies.networks import fixed, set_fixed, to_vector
from escalade.policies.normalizer import Normalization, Normalizer
from escalade.policies.policy import Policy, load
from escalade.recorders import Goals, ProgressFile, Recorder, make_console, rewind
from escalade.rollout.episodes import Episodes, Job
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Tensors, read
from escalade.support.exact import one_thread
from escalade.training.parts import Parts, find_environment, make_parts, make_policy
from escalade.training.trainer import Callback, Trainer, config_of, fixed_of, reopen

RESUMABLE = (
    "generations",
    "env_steps",
    "seconds",
    "target_return",
    "workers",
    "engine",
    "address",
    "worker_resources",
    "eval_episodes",
    "eval_every",
    "snapshot_every",
)
"""Options that may change when a run is resumed; none of them moves the centre."""


@dataclass(frozen=True)
class Run:
    """A finished (or interrupted) run: its folder, its summary, and the policy it trained."""

    folder: RunFolder
    summary: dict[str, Any]
    policy: Policy


@dataclass(frozen=True)
class Evaluation:
    """Returns of fresh episodes, and what they say of the policy."""

    returns: np.ndarray[Any, np.dtype[np.float64]]
    lengths: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """Standard deviation of the returns."""
        return float(self.returns.std())


def train(
    env: str,
    *,
    network: nn.Module | None = None,
    preset: str | None = "auto",
    verbose: bool = True,
    recorders: Sequence[Recorder] = (),
    callbacks: Sequence[Callback] = (),
    **options: Any,
) -> Run:
    """Train a policy on a Gymnasium environment; options are those of :class:`Config`.

    ``preset`` is ``auto`` (the environment's own, where there is one), a name, or None for plain
    defaults; options win over it. ``network`` trains a module of yours, which maps flattened
    observations (batch, inputs) to action outputs (batch, outputs). ``callbacks`` are called after
    every generation with a :class:`escalade.training.trainer.View`; one that returns True stops the run.

    Raises:
        InputError: an option is wrong; the message names it and the mend.
        EnvironmentFailure: the environment raised.
    """
    values = from_values({"env": env} | options)
    chosen = presets.options(values["env"], preset, values.get("strategy"))
    config = Config(**(chosen | values))
    return train_config(config, network=network, verbose=verbose, recorders=recorders, callbacks=callbacks)


def train_config(
    config: Config,
    *,
    network: nn.Module | None = None,
    verbose: bool = True,
    recorders: Sequence[Recorder] = (),
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train from a complete config, in a new run folder."""
    warm_up_for(config)
    with one_thread():
        parts = make_parts(config, network)
        config = _with_backend(config, parts)
        folder = new_folder(config)
        return _run(config, parts, folder, _Listeners(verbose, recorders, callbacks))


def resume(
    run: str | Path,
    *,
    network: nn.Module | None = None,
    verbose: bool = True,
    recorders: Sequence[Recorder] = (),
    callbacks: Sequence[Callback] = (),
    **changes: Any,
) -> Run:
    """Go on with a run from its latest whole checkpoint, bit for bit.

    Budgets, evaluation, workers and engine may change; see :data:`RESUMABLE`.

    Raises:
        InputError: there is no run or no whole checkpoint, or an option may not change.
    """
    folder = RunFolder.open(run)
    listeners = _Listeners(verbose, recorders, callbacks)
    values = from_values(changes)
    for name in values:
        if name not in RESUMABLE:
            raise InputError(
                f"--{name.replace('_', '-')} cannot change in a resumed run: only "
                f"{', '.join('--' + n.replace('_', '-') for n in RESUMABLE)} can"
            )
    if folder.untouched():  # killed before its first checkpoint: it begins as it would have begun
        config = read_config(folder).replace(**values)
        folder.forget_after(0)
        warm_up_for(config)
        with one_thread():
            return _run(config, make_parts(config, network), folder, listeners)
    tensors, state, problems = folder.checkpoints.load_latest()
    saved = _Saved.of(tensors, state, network)
    config = saved.config.replace(**values, run_dir=str(folder.path))
    if config.target_return != saved.config.target_return:
        reopen(state)
    warm_up_for(config)
    with one_thread():
        parts = make_parts(config, network)
        set_fixed(parts.policy.network, saved.fixed)
        return _run(config, parts, folder, listeners, (tensors, state, problems))


def evaluate(
    run: str | Path,
    *,
    episodes: int = 100,
    seed: int | None = None,
    checkpoint: str | int = "latest",
    backend: str | None = None,
    workers: int | None = None,
    network: nn.Module | None = None,
) -> Evaluation:
    """Run fresh episodes of a run's unperturbed policy, without action noise.

    ``seed`` chooses the episodes (the run's own seed by default, in a stream that training never
    uses); ``checkpoint`` is ``latest``, ``best`` or a generation; ``backend`` may differ from training's.
    """
    if episodes < 1:
        raise InputError(f"--episodes {episodes} must be at least 1")
    saved = _load(RunFolder.open(run), str(checkpoint), network)
    changes = {"workers": workers} if workers is not None else {}
    config = saved.config.replace(**changes, **({"backend": backend} if backend else {}))
    warm_up_for(config)
    parts = make_parts(config, network)
    set_fixed(parts.policy.network, saved.fixed)
    engine = parts.start_engine(config)
    try:
        job = Job(
            seed=config.seed if seed is None else seed,
            generation=0,
            center=saved.center,
            evaluations=episodes,
            evaluation_stream=Stream.FRESH_EVALUATION,
            normalization=saved.normalization,
        )
        results = Episodes.of(engine.run(job, job.items))
    finally:
        engine.close()
    return Evaluation(results.returns, results.lengths)


def render(
    run: str | Path,
    output: str | Path,
    *,
    checkpoint: str | int = "best",
    seed: int = 0,
    max_steps: int | None = None,
    network: nn.Module | None = None,
) -> tuple[float, int]:
    """Film an episode of a run's policy; its return and length. See :func:`record_episode`.

    ``checkpoint`` ``best`` is the policy of the best evaluation, that after the last generation included.
    """
    folder = RunFolder.open(run)
    if checkpoint == "best" and (not folder.best.exists() or folder.ended_at_best()):
        checkpoint = "latest"
    saved = _load(folder, str(checkpoint), network)
    environment = find_environment(saved.config.replace(backend="gymnasium"))
    policy = make_policy(saved.config, environment, network)
    set_fixed(policy.network, saved.fixed)
    policy.set(saved.center, saved.normalization)
    return record_episode(environment, policy, Path(output), seed=seed, max_steps=max_steps)


@dataclass(frozen=True)
class _Listeners:
    """Who is told of a run."""

    verbose: bool
    recorders: Sequence[Recorder]
    callbacks: Sequence[Callback]


def _run(
    config: Config,
    parts: Parts,
    folder: RunFolder,
    listeners: _Listeners,
    saved: tuple[Tensors, State, list[str]] | None = None,
) -> Run:
    engine: Engine | None = None
    told: list[Recorder] = []
    try:
        engine = parts.start_engine(config)
        if saved:
            progress = saved[1]["progress"]
            folder.forget_after(progress["generation"])
            write_config(folder, config)
            # The generation that met the target has a row, and moved nothing.
            lost = rewind(folder.progress, progress["generation"] + progress["solved"])
        told += [ProgressFile(folder.progress), *listeners.recorders]
        if listeners.verbose:
            told.append(make_console(_goals(config, parts)))
        if parts.environment.max_episode_steps is None:
            _note(
                told,
                f"{config.env} has no limit of steps: --max-episode-steps ends what never ends by itself",
            )
        trainer = Trainer(config, parts, engine, folder, told, listeners.callbacks)
        if saved:
            for problem in saved[2]:
                _note(told, f"{problem}: going on from the checkpoint before it")
            trainer.load(*saved[:2])
            again = f": {lost} later ones have no checkpoint and are run again" if lost else ""
            _note(told, f"resuming {folder.path} after generation {trainer.progress.generation}{again}")
        summary = trainer.run()
    finally:
        if engine is not None:
            engine.close()
        for recorder in told:
            recorder.close()
    if plotting_available() and summary["generations"]:
        plot_runs([folder.path], folder.curve, config.target_return, config.env)
    return Run(folder, summary, load(folder.policy, parts.policy.network))


def _goals(config: Config, parts: Parts) -> Goals:
    size = f"{len(parts.start):,} parameters"
    workers = "in this process" if config.worker_count == 0 else f"{config.worker_count} workers"
    what = f"{config.strategy}, population {config.population}, {size}, {workers}, {config.backend}"
    title = f"{config.env}: {what}"
    return Goals(title, config.target_return, config.generations, config.env_steps, config.seconds)


def _note(recorders: Sequence[Recorder], text: str) -> None:
    for recorder in recorders:
        recorder.note(text)


def _with_backend(config: Config, parts: Parts) -> Config:
    """The config with the backend that ``auto`` means here: a resumed run must keep it."""
    parts.environment = settle_backend(parts.environment)
    return config.replace(backend=parts.environment.backend)


@dataclass(frozen=True)
class _Saved:
    """What a checkpoint holds of the unperturbed policy."""

    config: Config
    center: NDArray[np.float32]
    normalization: Normalization | None
    fixed: Tensors
    """The network's frozen parameters and buffers, by name."""

    @classmethod
    def of(cls, tensors: Tensors, state: State, network: nn.Module | None) -> _Saved:
        config = config_of(state)
        if state["own_network"] and network is None:
            raise InputError(
                "the run trained a module of your own: in Python, pass one like it as network=..."
            )
        normalization = Normalizer.restored(tensors).freeze() if config.normalize_observations else None
        return cls(config, tensors["strategy.center"], normalization, fixed_of(tensors))


def _load(folder: RunFolder, checkpoint: str, network: nn.Module | None) -> _Saved:
    """A checkpoint: ``latest``, ``best`` or a generation."""
    checkpoints = folder.checkpoints
    if checkpoint == "best":
        config = _Saved.of(*checkpoints.load_latest()[:2], network).config
        if network is None and ":" in config.policy:  # a factory's network is not in the file
            network = make_policy(config, find_environment(config)).network
        policy = load(folder.best, network)
        return _Saved(config, to_vector(policy.network), policy.normalization, fixed(policy.network))
    if checkpoint == "latest":
        return _Saved.of(*checkpoints.load_latest()[:2], network)
    if checkpoint.isdecimal() and int(checkpoint) in checkpoints.generations():
        return _Saved.of(*read(checkpoints.path(int(checkpoint))), network)
    there = ", ".join(map(str, checkpoints.generations()))
    raise InputError(f"--checkpoint {checkpoint!r} must be best, latest or one of the generations {there}")
