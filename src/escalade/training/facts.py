"""The facts of a policy's run, for the console, recorders and the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from escalade.config.options import Config
from escalade.recorders import DETERMINISTIC, Goals, Recorder, info_columns
from escalade.storage.checkpoints import Loaded
from escalade.storage.run_folder import RunFolder
from escalade.strategies import novelty
from escalade.support.numbers import workers_in_words
from escalade.training.parts import Parts
from escalade.training.session import Checkpoint, SessionFacts
from escalade.training.sources import without_digest


def session_facts(
    config: Config,
    parts: Parts,
    folder: RunFolder,
    loaded: Loaded[Checkpoint] | None,
    recorders: Sequence[Recorder | str],
    verbose: bool,
) -> SessionFacts:
    """All that a session, its recorders and the summary are told of a policy's run."""
    drawn = (DETERMINISTIC,) if parts.policy.actions.draws else ()
    return SessionFacts(
        folder=folder,
        loaded=loaded,
        recorders=recorders,
        verbose=verbose,
        goals=_goals(config, parts),
        title=config.env,
        subject=_subject(config, parts),
        machine={"backend": config.backend, "engine": config.engine, "workers": config.worker_count},
        info=(*info_columns(config.info_keys), *drawn, *novelty.columns(config.novelty, config.centres)),
        trackers=config.recorder,
        options={name: value for name, value in asdict(config).items() if value is not None},
    )


def _subject(config: Config, parts: Parts) -> dict[str, Any]:
    """The thing that is trained, for the summary."""
    subject = {
        "env": config.env,
        "preset": config.preset,
        "strategy": config.strategy,
        "seed": config.seed,
    }
    if parts.has_own_network(config):
        subject["network"] = "own"
    if config.start_from is None:
        return subject
    source, digest = without_digest(config.start_from)
    return subject | {"start_from": source, "start_sha256": digest}


def _goals(config: Config, parts: Parts) -> Goals:
    size, workers = f"{len(parts.start):,} parameters", workers_in_words(config.worker_count)
    what = f"{config.strategy}, population {config.population}, {size}, {workers}, {config.backend}"
    whole = config.cutoff is None or parts.unlimited  # then a note tells once an episode is cut
    cut = "" if whole else f"; members' episodes are cut (cutoff {config.cutoff})"
    sticky = parts.environment.frames.stickiness(parts.environment.spec, parts.environment.kwargs)
    what += ", sampled actions" if parts.policy.actions.draws else ""
    title = f"{config.env}: {what}{f', {sticky}' if sticky else ''}{cut}"
    return Goals(title, config.target_return, config.generations, config.env_steps, config.seconds)
