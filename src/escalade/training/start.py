"""Warm start: load the first policy and normaliser from a run or a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium import spaces
from torch import nn

from escalade.config.options import Config
from escalade.errors import InputError, about
from escalade.policies.networks import from_vector, frozen_state, load_frozen_state, to_vector
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


@dataclass(frozen=True)
class _Source:
    """A policy that was found, and the normaliser it was trained with."""

    policy: Policy
    normalizer: Normalizer

    @property
    def sha256(self) -> str:
        """Digest of centre and normaliser (``params_sha256`` of summary.json) and of what does not evolve."""
        network = self.policy.network
        learnt = [*self.normalizer.tensors().values(), *frozen_state(network).values()]
        return params_sha256(to_vector(network), learnt)


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
        source = _find(place, checkpoint, config, parts.policy, network)
        digest = source.sha256
        if wanted not in (None, digest):
            raise InputError(
                f"it has the SHA-256 {digest}, not {wanted}, as it had where that was written: leave out "
                f"@{wanted}, or begin elsewhere, by another `run_dir`"
            )
        _take_over(parts.policy, source.policy)
    if len(source.normalizer.mean) == len(parts.policy.observation_mean):  # images may be normalised or not
        parts.normalizer = source.normalizer
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
) -> _Source:
    if not os.path.isfile(place):
        saved = SavedPolicy.find(RunFolder.open(place), checkpoint or "latest", network)
        return _Source(_policy_of(saved, config, policy), saved.normalizer)
    if checkpoint is not None:
        raise InputError(f"a file has no checkpoints: leave out :{checkpoint}")
    named = read(place).state.get("architecture")
    found = load(place, None if named else copy_module(policy.network))
    return _Source(found, Normalizer.of(found.normalization, len(found.observation_mean)))


def _policy_of(saved: SavedPolicy, config: Config, policy: Policy) -> Policy:
    """The policy that a checkpoint holds the numbers of.

    Where it is as large as the new one and made the same way, it is a copy of that one, so that the old
    environment need not be there any more.
    """
    own = saved.own_network
    before, now = (architecture_of(vars(each)) for each in (saved.config, config))
    sizes = len(saved.center), len(saved.normalizer.mean)
    alike = sizes == (len(to_vector(policy.network)), len(policy.observation_mean))
    if own or (alike and before == now and saved.config.head == config.head):
        if own and not alike:
            raise InputError(f"its module has {sizes[0]} parameters: give one of the same size as `network`")
        found = copy_module(policy)
    else:
        found = make_policy(saved.config, find_environment(saved.config))
    if sizes[0] != (own_size := len(to_vector(found.network))):
        raise InputError(
            f"its centre has {sizes[0]} parameters, and the policy that its config names {own_size}"
        )
    load_frozen_state(found.network, saved.frozen)
    from_vector(found.network, saved.center)
    return found
