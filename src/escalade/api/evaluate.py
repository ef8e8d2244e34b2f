"""Look at a trained policy: fresh episodes, and a film."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from escalade.api.named import named
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
from escalade.training.notes import check_failures, words_of
from escalade.training.parts import Parts, make_parts
from escalade.training.saved import SavedPolicy, refuse_checkpoint

if TYPE_CHECKING:  # a stub alone
    from escalade.config.keywords import BackendName


@dataclass(frozen=True)
class EvaluationResult:
    """Returns of fresh episodes, and what they say of the policy.

    If the policy draws its actions (``head="sample"``), these are episodes with drawn actions, and
    :attr:`deterministic_returns` has the same episodes with the best ones.
    """

    returns: np.ndarray[Any, np.dtype[np.float64]]
    """Shape (episodes,): sums of the environment's own rewards."""
    lengths: np.ndarray[Any, np.dtype[np.int64]]
    """Shape (episodes,), in the policy's steps."""
    infos: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = field(default_factory=dict)
    """Numbers of the episodes' last infos by ``info_keys``, shape (episodes,): NaN where there was none."""
    generation: int | None = None
    """Generation of the policy that was evaluated: the number of updates of its centre."""
    params_sha256: str = ""
    """Digest of its centre and normaliser; the summary's, where it is the policy that the run ended with.
    Of a policy's file that normalises it is another: the file keeps no sums."""
    failed: int = 0
    """Episodes that failed, of a run with ``on_error="worst"``: they count as the worst of the others."""
    behaviours: np.ndarray[Any, np.dtype[np.float32]] | None = None
    """Behaviours of the episodes, shape (episodes, size); None where nobody asked for any."""
    raised: str | None = None
    """The exception of the first failed episode that raised one, in words; None where none did."""

    deterministic_returns: np.ndarray[Any, np.dtype[np.float64]] | None = None
    """Returns of the best actions, shape (episodes,); None if the policy does not draw its actions."""

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
    centre: int | None = None,
    backend: BackendName | None = None,
    workers: int | None = None,
    device: str | None = None,
    network: nn.Module | None = None,
    info_keys: Sequence[str] | None = None,
    behaviour: str | Callable[[Any], Any] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> EvaluationResult:
    """Run fresh episodes of a run's unperturbed policy, without action noise.

    Args:
        run: the run's folder, what :func:`escalade.train` returned, ``zoo:NAME``, or a policy's file. A file
            names its environment, but none of the run's ``env_kwargs``, wrappers and limits: it is played
            without.
        episodes: how many.
        seed: chooses the episodes; the run's own seed by default, in a stream that training never uses.
        checkpoint: ``latest``, ``best`` or a generation.
        centre: number of a centre, of several, 0 for the first; the best one when None.
        backend: may differ from training's.
        workers: worker processes of this machine; the run's own number when None, or one a core where those
            were a cluster's.
        device: of a batched world and its policies; the run's own when None.
        network: a module like the one that was trained, where that was the user's own.
        info_keys: entries of the episodes' last infos to report; the run's own when None.
        behaviour: numbers that say how an episode went, as the option ``behaviour`` has them, or a function;
            the run's own when None; ``none`` for none, which needs no module of the run's own one.
        env_kwargs: arguments of the environment, over the run's own.

    Raises:
        InputError: there is no such run or checkpoint, an argument is wrong, or a file does not say enough.
        EnvironmentFailure: the environment raised; with ``on_error="worst"``, in more than a tenth.
    """
    whole_number(episodes, "`episodes`", 1)
    given: dict[str, Any] = {"workers": workers, "backend": backend, "device": device, "seed": seed}
    given["info_keys"] = info_keys
    given |= {"behaviour": None if behaviour == "none" else behaviour, "env_kwargs": env_kwargs or {}}
    changes = from_values({name: value for name, value in named(given).items() if value is not None})
    other = changes["env_kwargs"]
    saved = _saved(run, checkpoint, network, centre, other)
    changes["env_kwargs"] = saved.config.env_kwargs | other
    if other and backend is None:  # that of the run may not take them
        changes["backend"] = "auto"
    if workers == 0:
        changes["step_timeout"] = None
    if saved.config.early_end is None:  # which judges that number here too; else only training reads it
        changes["reward"] = None
    if behaviour == "none":
        changes |= {"behaviour": None, "novelty": None}
    config = saved.config.here().replace(**changes)
    warm_up_for(config, network)
    parts = make_parts(config, network)
    with about(f"`env_kwargs` {other}" if other else os.fspath(run)):
        saved.give_frozen(parts.policy)
    played = _played(saved, config, parts, episodes)
    first = played[:episodes]
    results, raised = _forgiven(first, config), first.first_raised
    failed = int(first.failed().sum()) if config.on_error == "worst" else 0
    # The run's own keys may be of episodes that went another way.
    asked = {*(info_keys or ()), *(parts.environment.behaviour_keys if behaviour is not None else ())}
    check_known(parts.environment, results.infos, asked)
    keys = config.info_keys
    infos = dict(zip(keys, results.infos.T[: len(keys)], strict=True))
    behaviours = None if parts.behaviour is None else results.behaviours
    best = _forgiven(played[episodes:], config).returns if parts.policy.actions.draws else None
    facts = (saved.generation, saved.sha256, failed, behaviours, raised, best)
    return EvaluationResult(results.returns, results.lengths, infos, *facts)


def _forgiven(episodes: Episodes, config: Config) -> Episodes:
    """The same; with ``on_error="worst"`` a failed one counts as the worst of them.

    Raises:
        EnvironmentFailure: more than a tenth failed, and more than one; or the only one.
    """
    failed, of = int(episodes.failed().sum()), len(episodes.returns)
    if config.on_error != "worst" or not failed:
        return episodes
    first = words_of(episodes.first_raised)
    check_failures(failed, of, "episodes", first, "on_error=worst", least=min(1, of - 1))
    return episodes.with_failed_as_worst()


def _played(saved: SavedPolicy, config: Config, parts: Parts, episodes: int) -> Episodes:
    """Fresh episodes of the saved policy; if it draws, then the same ones with the best actions."""
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
        with one_thread():  # as in training, where there are no workers
            return parts.play(engine, job)
    finally:
        engine.close()


def render(
    run: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    live: bool = False,
    checkpoint: str | int = "latest",
    centre: int | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    network: nn.Module | None = None,
) -> tuple[float, int]:
    """Film an episode of a run's policy, or show it; its return and length.

    Args:
        run: the run's folder, what :func:`escalade.train` returned, or a policy's file, which is played
            without wrappers, limits and arguments of the environment.
        output: the film, mp4 or gif; see :func:`escalade.media.video.record_episode`.
        live: show the episode in a window instead; see :func:`escalade.media.playing.show_episode`.
        checkpoint: ``latest``, ``best`` or a generation.
        centre: number of a centre, of several, 0 for the first; the best one when None.
        seed: of the episode.
        max_steps: steps after which it is left; None: at its end.
        network: a module like the one that was trained, where that was the user's own.

    Raises:
        InputError: there is no such run or checkpoint, the film cannot be made, or there is no display.
        EnvironmentFailure: the environment raised.
    """
    if live == (output is not None):
        raise InputError("give `output`, the film to make, or `live`, to see the episode: one of them")
    seed_number(seed)
    if max_steps is not None:
        whole_number(max_steps, "`max_steps`", 1)
    film = None if output is None else path_of(output, "choose another `output`").absolute()
    saved = _saved(run, checkpoint, network, centre)
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
    """The policy of a run's checkpoint, or of a file."""
    if os.path.isfile(file := path_of(run)):
        if center is not None:
            raise InputError(f"`centre` {center}: a policy's file holds one, so leave it out")
        refuse_checkpoint(checkpoint)
        return SavedPolicy.of_file(file, network, env_kwargs)
    return SavedPolicy.find(RunFolder.open(run), str(checkpoint), network, center)
