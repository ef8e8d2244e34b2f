"""Evaluate a trained policy on fresh episodes, and film it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from escalade.api.named import code_to_names
from escalade.api.opening import warm_up_for
from escalade.config.conversion import from_values
from escalade.config.options import Config
from escalade.errors import InputError, about
from escalade.media.playing import show_episode
from escalade.media.video import record_episode
from escalade.perturbation import Stream
from escalade.rollout.episodes import EpisodeJob, Episodes, check_known
from escalade.storage.files import path_of
from escalade.storage.run_folder import RunFolder
from escalade.support.exact import one_thread
from escalade.support.numbers import seed_number, whole_number
from escalade.training.environments import find_environment
from escalade.training.notes import check_failures, describe_failure
from escalade.training.parts import Parts, make_parts
from escalade.training.saved import SavedPolicy, refuse_checkpoint

if TYPE_CHECKING:  # exists as a stub only
    from escalade.config.keywords import BackendName


@dataclass(frozen=True)
class EvaluationResult:
    """Returns, lengths and infos of fresh episodes.

    If the policy samples its actions (``head="sample"``), these are episodes with sampled actions, and
    :attr:`deterministic_returns` has the same episodes with the best actions.
    """

    returns: np.ndarray[Any, np.dtype[np.float64]]
    """Shape (episodes,): sums of the environment's own rewards."""
    lengths: np.ndarray[Any, np.dtype[np.int64]]
    """Shape (episodes,), in steps of the policy."""
    infos: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = field(default_factory=dict)
    """Numbers from the episodes' last infos by key, of shape (episodes,); NaN if an info lacks the key."""
    generation: int | None = None
    """Generation of the evaluated policy, the number of updates of its center."""
    params_sha256: str = ""
    """Digest of its center and normalizer.

    For the policy that the run ended with, it equals the summary's. For a policy file with normalization it
    differs, because the file does not store the normalizer's sums.
    """
    failed: int = 0
    """Number of failed episodes in a run with ``on_error="worst"``; they count as the worst of the others."""
    behaviors: np.ndarray[Any, np.dtype[np.float32]] | None = None
    """Behaviors of the episodes, shape (episodes, size), or None if none were requested."""
    raised: str | None = None
    """The first exception that a failed episode raised, as text, or None."""

    deterministic_returns: np.ndarray[Any, np.dtype[np.float64]] | None = None
    """Returns with the best actions, shape (episodes,), or None if the policy does not sample its actions."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """Standard deviation of the returns."""
        return float(self.returns.std())


def evaluate(
    run: str | PathLike[str],
    *,
    episodes: int = 100,
    seed: int | None = None,
    checkpoint: str | int = "latest",
    center: int | None = None,
    backend: BackendName | None = None,
    workers: int | None = None,
    device: str | None = None,
    network: nn.Module | None = None,
    info_keys: Sequence[str] | None = None,
    behavior: str | Callable[[Any], Any] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> EvaluationResult:
    """Run fresh episodes of a run's unperturbed policy, without action noise.

    Args:
        run: a run folder, the result of :func:`escalade.train`, ``zoo:NAME``, or a policy file. A policy
            file names its environment, but stores no ``env_kwargs``, wrappers or limits; it is played
            without them.
        episodes: number of episodes.
        seed: seed of the episodes, by default that of the run. Training never uses these episodes.
        checkpoint: ``latest``, ``best`` or a generation.
        center: index of the center if the run has several, from 0. None selects the best one.
        backend: simulator backend, which may differ from training's.
        workers: worker processes on this machine. None takes the run's number, or one per core if the run
            used a cluster.
        device: device of a batched world and its policies, by default that of the run.
        network: a module like the trained one, if the run trained a module of your own.
        info_keys: entries of the episodes' last infos to report, by default those of the run.
        behavior: behavior of the episodes, as the option ``behavior`` or as a function. None takes the
            run's. ``"none"`` computes none, so a behavior function of the run need not be importable.
        env_kwargs: arguments of the environment that override the run's.

    Raises:
        InputError: there is no such run or checkpoint, an argument is invalid, or the policy file lacks
            something.
        EnvironmentFailure: the environment raised; with ``on_error="worst"``, in more than a tenth of the
            episodes.
    """
    whole_number(episodes, "`episodes`", 1)
    options: dict[str, Any] = {"workers": workers, "backend": backend, "device": device, "seed": seed}
    options["info_keys"] = info_keys
    options |= {"behavior": None if behavior == "none" else behavior, "env_kwargs": env_kwargs or {}}
    changes = from_values(
        {name: value for name, value in code_to_names(options).items() if value is not None}
    )
    other = changes["env_kwargs"]
    saved = _saved(run, checkpoint, network, center, other)
    changes["env_kwargs"] = saved.config.env_kwargs | other
    if other and backend is None:  # the run's backend may not support these arguments
        changes["backend"] = "auto"
    if workers == 0:
        changes["step_timeout"] = None
    if saved.config.early_end is None:  # only training and early ends read the reward
        changes["reward"] = None
    if behavior == "none":
        changes |= {"behavior": None, "novelty": None}
    config = saved.config.here().replace(**changes)
    warm_up_for(config, network)
    parts = make_parts(config, network)
    with about(f"`env_kwargs` {other}" if other else os.fspath(run)):
        saved.load_frozen(parts.policy)
    played = _play(saved, config, parts, episodes)
    first = played[:episodes]
    results, raised = _with_failures_as_worst(first, config), first.first_raised
    failed = int(first.failed().sum()) if config.on_error == "worst" else 0
    # Not the run's own keys: these episodes may end differently and lack some of them.
    requested = {*(info_keys or ()), *(parts.environment.behavior_keys if behavior is not None else ())}
    check_known(parts.environment, results.infos, requested)
    keys = config.info_keys
    infos = dict(zip(keys, results.infos.T[: len(keys)], strict=True))
    behaviors = None if parts.behavior is None else results.behaviors
    best = _with_failures_as_worst(played[episodes:], config).returns if parts.policy.actions.draws else None
    facts = (saved.generation, saved.sha256, failed, behaviors, raised, best)
    return EvaluationResult(results.returns, results.lengths, infos, *facts)


def _with_failures_as_worst(episodes: Episodes, config: Config) -> Episodes:
    """Count failed episodes as the worst of the others if the run has ``on_error="worst"``.

    Raises:
        EnvironmentFailure: the only episode failed, or more than one and more than a tenth of them.
    """
    failed, of = int(episodes.failed().sum()), len(episodes.returns)
    if config.on_error != "worst" or not failed:
        return episodes
    first = describe_failure(episodes.first_raised)
    check_failures(failed, of, "episodes", first, "on_error=worst", least=min(1, of - 1))
    return episodes.with_failed_as_worst()


def _play(saved: SavedPolicy, config: Config, parts: Parts, episodes: int) -> Episodes:
    """Play fresh episodes; if the policy samples actions, then the same ones again with the best actions."""
    best = episodes if parts.policy.actions.draws else 0
    job = EpisodeJob(
        seed=config.seed,
        generation=0,
        center=saved.center,
        evaluations=episodes + best,
        best_evaluations=best,
        evaluation_stream=Stream.FRESH_EVALUATION,
        normalization=saved.normalization,
    )
    engine = parts.start_engine(config)
    try:
        with one_thread():  # as in training, for when there are no workers
            return parts.play(engine, job)
    finally:
        engine.close()


def render(
    run: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    live: bool = False,
    checkpoint: str | int = "latest",
    center: int | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    network: nn.Module | None = None,
) -> tuple[float, int]:
    """Film an episode of a run's policy, or show it in a window.

    Args:
        run: a run folder, the result of :func:`escalade.train`, or a policy file. A policy file is played
            without the run's wrappers, limits and arguments of the environment.
        output: file of the film, mp4 or gif; see :func:`escalade.media.video.record_episode`.
        live: show the episode in a window instead; see :func:`escalade.media.playing.show_episode`.
        checkpoint: ``latest``, ``best`` or a generation.
        center: index of the center if the run has several, from 0. None selects the best one.
        seed: seed of the episode.
        max_steps: steps after which the film stops. None films the whole episode.
        network: a module like the trained one, if the run trained a module of your own.

    Returns:
        The return and the length of the episode.

    Raises:
        InputError: there is no such run or checkpoint, the film cannot be made, or there is no display.
        EnvironmentFailure: the environment raised.
    """
    if live == (output is not None):
        raise InputError("pass either `output`, to film the episode, or `live`, to show it in a window")
    seed_number(seed)
    if max_steps is not None:
        whole_number(max_steps, "`max_steps`", 1)
    film = None if output is None else path_of(output, "choose a different `output`").absolute()
    saved = _saved(run, checkpoint, network, center)
    environment = find_environment(saved.config.replace(backend="auto"))
    policy = saved.policy(environment, network)
    policy.reset(seed)
    if film is None:
        return show_episode(environment, policy, seed=seed, max_steps=max_steps)
    return record_episode(environment, policy, film, seed=seed, max_steps=max_steps)


def _saved(
    run: str | PathLike[str],
    checkpoint: str | int,
    network: nn.Module | None,
    center: int | None,
    env_kwargs: dict[str, Any] | None = None,
) -> SavedPolicy:
    """Find the policy of a run's checkpoint, or of a policy file."""
    if os.path.isfile(file := path_of(run)):
        if center is not None:
            raise InputError(
                f"`center` {center} has no effect with a policy file, which holds one; remove it"
            )
        refuse_checkpoint(checkpoint)
        return SavedPolicy.of_file(file, network, env_kwargs)
    return SavedPolicy.find(RunFolder.open(run), str(checkpoint), network, center)
