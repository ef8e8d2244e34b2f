"""Warm start: load the initial policy and normalizer from a run or a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gymnasium import spaces
from torch import nn

from escalade.config.options import Config
from escalade.errors import InputError, about
from escalade.policies.networks import frozen_state, to_vector
from escalade.policies.normalizer import Normalizer
from escalade.policies.policy import Policy, architecture_of, load
from escalade.policies.population.layout import copy_module
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import read
from escalade.training.environments import find_environment
from escalade.training.parts import Parts, make_policy
from escalade.training.results import params_sha256
from escalade.training.saved import SavedPolicy
from escalade.training.sources import absolute, split, without_digest


def begin(config: Config, parts: Parts, network: nn.Module | None) -> Config:
    """Load the center and the normalizer of ``config.start_from`` into ``parts``.

    Args:
        config: A config with ``start_from``.
        parts: Parts of the new run, changed in place.
        network: The user's module, if the run trains one.

    Returns:
        The config, with the source's absolute path and the SHA-256 of the loaded policy.

    Raises:
        InputError: The policy does not exist, does not fit, or does not have the SHA-256 of the config.
    """
    assert config.start_from is not None
    text, wanted = without_digest(config.start_from)
    with about(f"`start_from` {text}"):
        place, checkpoint = split(text)
        source, normalizer = _find(place, checkpoint, config, parts.policy, network)
        learnt = [*normalizer.tensors().values(), *frozen_state(source.network).values()]
        digest = params_sha256(to_vector(source.network), learnt)
        if wanted not in (None, digest):
            raise InputError(
                f"its SHA-256 is {digest}, not {wanted} as recorded; to use it anyway, remove @{wanted}, or "
                "choose another `run_dir`"
            )
        _copy_weights(parts.policy, source)
    if len(normalizer.mean) == len(parts.policy.observation_mean):  # images may be normalized or not
        parts.normalizer = normalizer
    parts.start = to_vector(parts.policy.network)
    parts.further_starts = [parts.start for _ in parts.further_starts]
    return config.replace(start_from=f"{absolute(text)}@{digest}")


def _copy_weights(policy: Policy, source: Policy) -> None:
    """Copy weights and buffers of ``source`` to ``policy``.

    Raises:
        InputError: Observations, actions or layers differ.
    """
    for what, before, now in (
        ("observations", source.observation_space, policy.observation_space),
        ("actions", source.actions.space, policy.actions.space),
    ):
        if _described(before) != _described(now):
            raise InputError(f"its {what} are {_described(before)}, but {_described(now)} here")
    if source.actions.head != policy.actions.head:
        raise InputError(f"its `head` is {source.actions.head}, but {policy.actions.head} here")
    try:
        policy.network.load_state_dict(source.network.state_dict())
    except RuntimeError as problem:
        details = " ".join(str(problem).split())
        raise InputError(f"its layers differ from the new policy's: {details}") from None


def _described(space: spaces.Space[Any]) -> str:
    return f"{type(space).__name__} of {spaces.flatdim(space)}"


def _find(
    place: Path, checkpoint: str | None, config: Config, policy: Policy, network: nn.Module | None
) -> tuple[Policy, Normalizer]:
    """Return the policy at ``place``, and the normalizer that it was trained with."""
    if not os.path.isfile(place):
        saved = SavedPolicy.find(RunFolder.open(place), checkpoint or "latest", network)
        return _policy_of(saved, config, policy), saved.normalizer
    if checkpoint is not None:
        raise InputError(f"a file has no checkpoints; remove :{checkpoint}")
    named = read(place).state.get("architecture")
    found = load(place, None if named else copy_module(policy.network))
    return found, Normalizer.of(found.normalization, len(found.observation_mean))


def _policy_of(saved: SavedPolicy, config: Config, policy: Policy) -> Policy:
    """Return a checkpoint's policy.

    A policy with the same architecture as the new one is a copy of the new one, so that the old environment
    need not exist any more.
    """
    before, now = (architecture_of(vars(each)) for each in (saved.config, config))
    alike = before == now and saved.config.head == config.head and saved.fits(policy)
    if saved.own_network or alike:
        return saved.fill(copy_module(policy))
    return saved.fill(make_policy(saved.config, find_environment(saved.config)))
