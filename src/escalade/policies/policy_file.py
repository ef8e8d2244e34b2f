"""The contents of a policy's file, checked before anything is built from them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gymnasium import spaces

from escalade.envs.actions import ActionMap
from escalade.envs.spaces import restore
from escalade.errors import about
from escalade.policies.activations import ACTIVATIONS
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.policies.normalizer import Normalization
from escalade.storage.tensors import Damaged, Stored, Tensors, read, record, with_prefix

KIND = "escalade-policy-1"
INVERSE_STD = "observation_scale"
"""The name in files of 1 / the observations' standard deviation."""


@dataclass(frozen=True)
class NetworkFacts:
    """The arguments of :func:`escalade.policies.networks.build` for the network."""

    policy: str
    hidden: list[int]
    activation: str
    bias: bool


@dataclass(frozen=True)
class PolicyFile:
    """A policy as it was saved."""

    env: str
    observation_space: spaces.Space[Any]
    actions: ActionMap
    architecture: dict[str, Any]
    """:class:`NetworkFacts`; empty for a module of the user's."""
    normalized: bool
    normalization: Normalization
    """The last one that the policy had, whether it is ``normalized`` or not."""
    weights: Tensors
    """The network's state dict."""
    layers: list[str] | None
    """The classes of a user's module and of its parts; None of others."""

    @classmethod
    def read(cls, path: Path) -> PolicyFile:
        """Read what :meth:`escalade.policies.policy.Policy.save` wrote.

        Raises:
            InputError: there is no such file.
            Damaged: it is damaged, or of a different kind.
        """
        content = read(path)
        if "progress" in content.state:
            raise Damaged(
                f"{path} is a checkpoint, from which a run goes on: load policy.safetensors or "
                "best.safetensors of its run's folder"
            )
        if content.state.get("kind") != KIND:
            raise Damaged(
                f"{path} is not a policy that a run of train saved, as its policy.safetensors and "
                "best.safetensors are; load_evolved reads what evolve saved"
            )
        with about(f"{path} cannot be used", Damaged):
            return cls._of(content)

    @classmethod
    def _of(cls, content: Stored) -> PolicyFile:
        state, tensors = content.state, content.tensors
        architecture = state["architecture"]
        if architecture:
            architecture = asdict(record(NetworkFacts, architecture))
            _refuse_code(**architecture)
        clip = math.inf if state["observation_clip"] is None else state["observation_clip"]
        moments = tensors["observation_mean"], tensors[INVERSE_STD]
        return cls(
            env=state["env"],
            observation_space=restore(state["observation_space"]),
            actions=ActionMap(restore(state["action_space"]), state["action_map"], state["head"]),
            architecture=architecture,
            normalized=state["normalized"],
            normalization=Normalization(*moments, clip, state["observation_count"]),
            weights=with_prefix("network.", tensors),
            layers=state.get("layers"),
        )


def _refuse_code(policy: str, activation: str, **others: Any) -> None:
    """Refuse names beyond the registries': a module of the file's choice would be imported."""
    if policy not in ARCHITECTURES or activation not in ACTIVATIONS:
        raise Damaged("its architecture is none that Escalade saves")
