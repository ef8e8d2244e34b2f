"""Warm start: load the first policy and normaliser from a run or a file."""

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
    """Give ``parts`` the centre and the normaliser that ``config`` says to start from.

    Args:
        config: whose ``start_from`` is given.
        parts: of the new run.
        network: the user's own module, where the run trains one.

    Returns:
        The config with the source's absolute path and the SHA-256 of what was taken.

    Raises:
        InputError: there is no such policy, it does not fit, or it has another SHA-256 than the config's.
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
                f"it has the SHA-256 {digest}, not {wanted}, as it had where that was written: leave out "
                f"@{wanted}, or begin elsewhere, by another `run_dir`"
            )
        _take_over(parts.policy, source)
    if len(normalizer.mean) == len(parts.policy.observation_mean):  # images may be normalised or not
        parts.normalizer = normalizer
    parts.start = to_vector(parts.policy.network)
    parts.further_starts = [parts.start for _ in parts.further_starts]
    return config.replace(start_from=f"{absolute(text)}@{digest}")


def _take_over(policy: Policy, source: Policy) -> None:
    """Give ``policy`` the weights and buffers of ``source``.

    Raises:
        InputError: their observations, their actions or their layers differ.
    """
    for what, before, now in (
        ("observations", source.observation_space, policy.observation_space),
        ("actions", source.actions.space, policy.actions.space),
    ):
        if _words(before) != _words(now):
            raise InputError(f"its {what} are {_words(before)}, and {_words(now)} here")
    if source.actions.head != policy.actions.head:
        raise InputError(f"its `head` is {source.actions.head}, and {policy.actions.head} here")
    try:
        policy.network.load_state_dict(source.network.state_dict())
    except RuntimeError as problem:
        said = " ".join(str(problem).split())
        raise InputError(f"it has other layers than the new policy: {said}") from None


def _words(space: spaces.Space[Any]) -> str:
    return f"{type(space).__name__} of {spaces.flatdim(space)}"


def _find(
    place: Path, checkpoint: str | None, config: Config, policy: Policy, network: nn.Module | None
) -> tuple[Policy, Normalizer]:
    """The policy that is there, and the normaliser that it was trained with."""
    if not os.path.isfile(place):
        saved = SavedPolicy.find(RunFolder.open(place), checkpoint or "latest", network)
        return _policy_of(saved, config, policy), saved.normalizer
    if checkpoint is not None:
        raise InputError(f"a file has no checkpoints: leave out :{checkpoint}")
    named = read(place).state.get("architecture")
    found = load(place, None if named else copy_module(policy.network))
    return found, Normalizer.of(found.normalization, len(found.observation_mean))


def _policy_of(saved: SavedPolicy, config: Config, policy: Policy) -> Policy:
    """The policy that a checkpoint holds the numbers of.

    If it is made the same way as the new one, it is a copy of that one, so that the old environment need not
    be there any more.
    """
    before, now = (architecture_of(vars(each)) for each in (saved.config, config))
    alike = before == now and saved.config.head == config.head and saved.fits(policy)
    if saved.own_network or alike:
        return saved.fill(copy_module(policy))
    return saved.fill(make_policy(saved.config, find_environment(saved.config)))
