"""Look at a trained policy: fresh episodes, and a film."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from escalade.api.warm import warm_up_for
from escalade.config.conversion import from_values
from escalade.media.video import record_episode
from escalade.perturbation import Stream
from escalade.rollout.episodes import EpisodeJob, Episodes
from escalade.storage.run_folder import RunFolder
from escalade.support.exact import one_thread
from escalade.support.numbers import whole_number
from escalade.training.parts import find_environment, make_parts
from escalade.training.saved import SavedPolicy


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


def evaluate(
    run: str | PathLike[str],
    *,
    episodes: int = 100,
    seed: int | None = None,
    checkpoint: str | int = "latest",
    backend: str | None = None,
    workers: int | None = None,
    network: nn.Module | None = None,
) -> Evaluation:
    """Run fresh episodes of a run's unperturbed policy, without action noise.

    Args:
        run: the run's folder, or what :func:`escalade.train` returned.
        episodes: how many.
        seed: chooses the episodes; the run's own seed by default, in a stream that training never uses.
        checkpoint: ``latest``, ``best`` or a generation.
        backend: may differ from training's.
        workers: worker processes; the run's own number when None.
        network: a module like the one that was trained, where that was the user's own.

    Raises:
        InputError: there is no such run or checkpoint, or an argument is wrong.
        EnvironmentFailure: the environment raised.
    """
    whole_number(episodes, "`episodes`", 1)
    given = {"workers": workers, "backend": backend, "seed": seed}
    changes = from_values({name: value for name, value in given.items() if value is not None})
    if workers == 0:
        changes["step_timeout"] = None  # which needs workers
    saved = SavedPolicy.find(RunFolder.open(run), str(checkpoint), network)
    config = saved.config.replace(**changes, reward_info=None)  # which only training reads
    warm_up_for(config, network)
    parts = make_parts(config, network)
    saved.fit(parts)
    engine = parts.start_engine(config)
    try:
        job = EpisodeJob(
            seed=config.seed,
            generation=0,
            center=saved.center,
            evaluations=episodes,
            evaluation_stream=Stream.FRESH_EVALUATION,
            normalization=saved.normalization,
        )
        with one_thread():  # as in training, where there are no workers
            results = Episodes.of(engine.run(job, job.items), scored=parts.reward is not None)
    finally:
        engine.close()
    return Evaluation(results.returns, results.lengths)


def render(
    run: str | PathLike[str],
    output: str | PathLike[str],
    *,
    checkpoint: str | int = "best",
    seed: int = 0,
    max_steps: int | None = None,
    network: nn.Module | None = None,
) -> tuple[float, int]:
    """Film an episode of a run's policy; its return and length. See :func:`record_episode`.

    Raises:
        InputError: there is no such run or checkpoint, or the film cannot be made.
        EnvironmentFailure: the environment raised.
    """
    saved = SavedPolicy.find(RunFolder.open(run), str(checkpoint), network)
    environment = find_environment(saved.config.replace(backend="gymnasium"))
    policy = saved.policy(environment, network)
    policy.reset(seed)
    return record_episode(environment, policy, Path(output), seed=seed, max_steps=max_steps)
