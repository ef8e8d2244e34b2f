"""Contents of a policy's file, validated before anything is built from them."""

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
"""Name in files of 1 / the observations' standard deviation."""


@dataclass(frozen=True)
class NetworkFacts:
    """Arguments of :func:`escalade.policies.networks.build` for the network."""

    policy: str
    hidden: list[int]
    activation: str
    bias: bool


@dataclass(frozen=True)
class PolicyFile:
    """A saved policy."""

    env: str
    observation_space: spaces.Space[Any]
    actions: ActionMap
    architecture: dict[str, Any]
    """:class:`NetworkFacts`; empty for a user's module."""
    normalized: bool
    normalization: Normalization
    """The policy's last normalization, even if it is not ``normalized``."""
    weights: Tensors
    """The network's state dict."""
    layers: list[str] | None
    """Class names of a user's module and its submodules, or None for other networks."""

    @classmethod
    def read(cls, path: Path) -> PolicyFile:
        """Read a file written by :meth:`escalade.policies.policy.Policy.save`.

        Raises:
            InputError: the file does not exist.
            Damaged: the file is damaged, or of a different kind.
        """
        content = read(path)
        if "progress" in content.state:
            raise Damaged(
                f"{path} is a checkpoint for resuming a run, not a policy; load policy.safetensors or "
                "best.safetensors from the run folder"
            )
        if content.state.get("kind") != KIND:
            raise Damaged(
                f"{path} is not a policy saved by train, such as policy.safetensors or best.safetensors; "
                "use load_evolved for modules saved by evolve"
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
    """Raise Damaged for names outside the registries, because a file must not choose code to import."""
    if policy not in ARCHITECTURES or activation not in ACTIVATIONS:
        raise Damaged("its architecture is not one that Escalade saves")
