"""A trained policy: the network, what it needs around it, and the file it is saved in."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from escalade.envs.actions import ActionMap
from escalade.envs.spaces import describe, flatten, observation_size
from escalade.errors import InputError
from escalade.policies.layout import on_cpu
from escalade.policies.networks import as_array, batched_network, build, from_vector, frozen_state, layout_of
from escalade.policies.normalizer import CLIP, Normalization, normalize
from escalade.policies.policy_file import INVERSE_STD, KIND, PolicyFile
from escalade.policies.torch_network import TorchNetwork
from escalade.storage.files import AnyPath
from escalade.storage.tensors import write

_BUILD_OPTIONS = ("policy", "hidden", "activation", "bias")


class Policy(nn.Module):
    """Observation to action: normalisation, network, action map.

    ``network`` is an nn.Module from flattened observations (batch, inputs) to raw outputs
    (batch, outputs). ``architecture`` is how :func:`escalade.policies.networks.build` makes it
    again, or empty for a module of the user's. A network on another device than the CPU is left as it
    is: the policy holds a copy of it on the CPU, where rollouts run.
    """

    def __init__(
        self,
        network: nn.Module,
        observation_space: Any,
        actions: ActionMap,
        *,
        env_id: str = "",
        architecture: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        layout_of(network)  # refuses what cannot evolve, before anything is copied
        self.network = on_cpu(network)
        frozen_state(self.network)  # refuses what could not be saved
        self.observation_space = observation_space
        self.actions = actions
        self.env_id = env_id
        self.architecture = architecture or {}
        size = observation_size(observation_space)
        self.normalized = False
        self.observation_clip = CLIP
        self.observation_mean: Tensor
        self.observation_inverse_std: Tensor
        self.register_buffer("observation_mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("observation_inverse_std", torch.ones(size, dtype=torch.float64))
        self._map = actions.compile()
        self.batched = batched_network(self.network)
        if isinstance(self.batched, TorchNetwork):
            self.batched.check(size, actions.outputs)
        elif (self.batched.inputs, self.batched.outputs) != (size, actions.outputs):
            raise InputError(
                f"policy takes {self.batched.inputs} and gives {self.batched.outputs} numbers, but "
                f"the environment needs {size} and {actions.outputs}"
            )

    def set(self, vector: Any, normalization: Normalization | None) -> None:
        """Take over a centre, shape (dimension,), and the normalisation it was trained with."""
        from_vector(self.network, vector)
        self.normalized = normalization is not None
        if normalization is not None:
            self.observation_clip = normalization.clip
            self.observation_mean.copy_(torch.from_numpy(normalization.mean))
            self.observation_inverse_std.copy_(torch.from_numpy(normalization.inverse_std))

    @property
    def normalization(self) -> Normalization | None:
        """What observations are normalised by; None when they are not."""
        if not self.normalized:
            return None
        mean, inverse_std = self.observation_mean.numpy(), self.observation_inverse_std.numpy()
        return Normalization(mean.copy(), inverse_std.copy(), self.observation_clip)

    def forward(self, observations: Tensor) -> Tensor:
        """Raw outputs (batch, outputs) for flattened observations (batch, inputs)."""
        if self.normalized:
            observations = normalize(
                observations.double(),
                self.observation_mean,
                self.observation_inverse_std,
                self.observation_clip,
            )
        outputs: Tensor = self.network(observations.float())
        return outputs

    def act(self, observation: Any) -> Any:
        """The action for one observation, each as the environment gives and takes it."""
        flat = np.asarray(flatten(self.observation_space, observation), dtype=np.float64)
        with torch.no_grad():
            raw = self.forward(torch.from_numpy(flat)[None]).numpy()
        action = self._map(raw)[0]
        return int(action) if isinstance(self.actions.space, spaces.Discrete) else np.asarray(action)

    def save(self, path: AnyPath) -> None:
        """Write the policy to one safetensors file.

        Raises:
            StorageFailure: the disk is full or the folder cannot be written.
        """
        state_dict = self.network.state_dict()
        tensors = {f"network.{name}": as_array(name, value) for name, value in state_dict.items()}
        tensors["observation_mean"] = self.observation_mean.numpy()
        tensors[INVERSE_STD] = self.observation_inverse_std.numpy()
        state = {
            "kind": KIND,
            "env": self.env_id,
            "observation_space": describe(self.observation_space),
            "action_space": describe(self.actions.space),
            "action_map": self.actions.bounding,
            "head": self.actions.head,
            "normalized": self.normalized,
            "observation_clip": None if self.observation_clip == math.inf else self.observation_clip,
            "architecture": self.architecture,
        }
        write(Path(path), tensors, state)


def load(path: AnyPath, network: nn.Module | None = None) -> Policy:
    """Read a policy from a run folder or from its ``policy.safetensors``.

    ``network`` is needed for policies trained from a module of the user's: no code is read from
    the file.

    Raises:
        InputError: there is no policy there, it is damaged, or ``network`` does not fit it.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "policy.safetensors"
    saved = PolicyFile.read(file)
    architecture = {} if saved.architecture is None else asdict(saved.architecture)
    if network is None:
        if not architecture:
            raise InputError(
                f"{file} holds a module of your own: pass one like it as load(path, network=...)"
            )
        inputs, outputs = observation_size(saved.observation_space), saved.actions.outputs
        network = build(inputs=inputs, outputs=outputs, **architecture)
    policy = Policy(
        network, saved.observation_space, saved.actions, env_id=saved.env, architecture=architecture
    )
    weights = {name: torch.from_numpy(value) for name, value in saved.weights.items()}
    try:
        policy.network.load_state_dict(weights)
    except RuntimeError as problem:
        raise InputError(f"the network does not fit {file}: {problem}") from None
    policy.normalized = saved.normalized
    policy.observation_clip = saved.observation_clip
    policy.observation_mean.copy_(torch.from_numpy(saved.observation_mean))
    policy.observation_inverse_std.copy_(torch.from_numpy(saved.observation_inverse_std))
    return policy.eval()


def architecture_of(options: dict[str, Any]) -> dict[str, Any]:
    """The part of a config that :func:`escalade.policies.networks.build` needs to make a network again."""
    chosen = {name: options[name] for name in _BUILD_OPTIONS}
    return chosen | {"hidden": list(chosen["hidden"])}
