"""Build the :class:`RunSpec` of a policy's run from its config."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any

from torch import nn

from escalade.config.conversion import to_toml
from escalade.config.options import Config
from escalade.envs import settle_backend
from escalade.envs.environment import DEFAULT_LIMIT
from escalade.envs.spaces import observation_size
from escalade.errors import InputError
from escalade.perturbation.registry import rank_of
from escalade.recorders import DETERMINISTIC, Goals, check_recorders, info_columns
from escalade.rollout.cutoff import MOVING, START, Cutoff
from escalade.strategies import Strategy
from escalade.support.numbers import workers_in_words
from escalade.training.environments import check_states, with_workers
from escalade.training.limits import Limits
from escalade.training.parts import Parts, make_parts, make_search
from escalade.training.policy_objective import PolicyObjective
from escalade.training.run import RunSpec
from escalade.training.saved import SavedPolicy
from escalade.training.sources import without_digest
from escalade.training.start import begin


def policy_spec(
    config: Config, network: nn.Module | None = None, saved: SavedPolicy | None = None
) -> RunSpec:
    """Return the run of a config.

    Args:
        config: Options of the run.
        network: The user's module, if the run trains one.
        saved: The policy in the checkpoint that a resumed run continues from.

    Raises:
        InputError: Options, environment, strategy and network are incompatible.
        Damaged: ``saved`` has a different network.
    """
    check_recorders(config.recorder, "recorder")
    parts = make_parts(config, network)
    config = _settled(config, parts)
    if saved is not None:
        saved.load_frozen(parts.policy)
    elif config.start_from is not None:
        config = begin(config, parts, network)
    strategy = make_search(config, parts)
    check_states(config, parts.environment)
    config = _limit_episodes(config, parts, strategy)
    searched = () if config.novelty is None else config.novelty.columns
    drawn = (DETERMINISTIC,) if parts.policy.actions.draws else ()
    return RunSpec(
        strategy=strategy,
        module=parts.policy.network,
        objective=partial(PolicyObjective, config, parts),
        engine=partial(parts.start_engine, config),
        limits=Limits(config.generations, config.env_steps, config.seconds, config.target_return),
        eval_every=config.eval_every,
        snapshot_every=config.snapshot_every,
        goals=_goals(config, parts),
        title=config.env,
        subject=_subject(config, parts),
        machine={"backend": config.backend, "engine": config.engine, "workers": config.worker_count},
        options={name: value for name, value in asdict(config).items() if value is not None},
        config=to_toml(config),
        info=(*info_columns(config.info_keys), *drawn, *searched),
        trackers=config.recorder,
        first_notes=_first_notes(config, parts) if saved is None else (),
    )


def _settled(config: Config, parts: Parts) -> Config:
    """Replace ``auto`` options by their values, which a resumed run must not change."""
    actions = parts.policy.actions
    if config.action_map not in ("auto", "clip") and not actions.bounded:
        raise InputError(
            f"`action_map` {config.action_map} has no effect, as no action has two bounds; remove it"
        )
    parts.environment = settle_backend(parts.environment)
    found: dict[str, Any] = {"backend": parts.environment.backend, "head": actions.head}
    if parts.normalizes_images:
        found["normalize_observations"] = True
    found |= {"action_map": actions.bounding} if actions.mapped else {}
    return with_workers(config.replace(**found), parts.environment)


def _subject(config: Config, parts: Parts) -> dict[str, Any]:
    """Describe the trained policy for the summary."""
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
    whole = config.cutoff is None or parts.unlimited  # then a note reports the first cut episode
    cut = "" if whole else f"; members' episodes are cut (cutoff {config.cutoff})"
    sticky = parts.environment.frames.stickiness(parts.environment.spec, parts.environment.kwargs)
    what += ", sampled actions" if parts.policy.actions.draws else ""
    title = f"{config.env}: {what}{f', {sticky}' if sticky else ''}{cut}"
    return Goals(title, config.target_return, config.generations, config.env_steps, config.seconds)


def _limit_episodes(config: Config, parts: Parts, strategy: Strategy) -> Config:
    """Limit the episodes of an environment without a step limit, in ``parts`` and in the returned config.

    Otherwise, a policy that repeats an action without effect may never finish an episode. The config records
    both options, so that resumed runs and evaluations have the same limits.
    """
    if parts.environment.max_episode_steps is not None:
        return config
    parts.unlimited = True
    cap = config.cutoff
    if cap is None:
        cap = Cutoff(START if strategy.compares_generations else MOVING)
    limit = max(DEFAULT_LIMIT, cap.start or 0)
    parts.environment = replace(parts.environment, max_episode_steps=limit)
    return config.replace(max_episode_steps=limit, cutoff=cap)


def _first_notes(config: Config, parts: Parts) -> list[str]:
    """Return notes about unusual settings, for the start of a run."""
    notes = []
    if config.start_from is not None:
        source, digest = without_digest(config.start_from)
        notes.append(f"starting from the policy of {source} (SHA-256 {digest})")
    batching = parts.policy.batching
    slow = batching.refusal or ("" if rank_of(config.perturbation) else ", ".join(batching.slow))
    faster = "; a `Chain` (escalade.policies.modules) runs nn.GRUCell and nn.LSTMCell for all members at once"
    if slow:
        notes.append(
            f"{'the' if batching.refusal else 'part of the'} policy is called once for each member, several "
            f"times slower than one call for many: torch.func.vmap cannot batch it ({slow.splitlines()[0]})"
            f"{faster if 'gru' in slow or 'lstm' in slow else ''}"
        )
    if config.reward is not None and config.reward.info is not None:
        notes.append(
            f"fitness is computed from info {config.reward.info!r}; returns, evaluations and "
            "`target_return` use the environment's own reward"
        )
    if parts.flattens_large_images:
        size = observation_size(parts.environment.observation_space)
        notes.append(
            f"the policy flattens images of {size:,} numbers; if it learns slowly, try `resize=20`, with "
            "`grayscale` for colors and `frame_stack=2` for motion, or `policy=nature`"
        )
    if parts.environment.text_parts:
        ignored = ", ".join(parts.environment.text_parts)
        notes.append(f"the policy ignores text in observations: {ignored}")
    return notes
