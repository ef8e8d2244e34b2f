"""A trained policy: its network, normalization and action map, and its file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from escalade.envs.actions import ActionMap
from escalade.envs.masks import MASK, maskable, read_masks
from escalade.envs.spaces import as_batch, describe, moments_size, observation_shape, observation_size
from escalade.envs.structured import as_batch_of_parts
from escalade.errors import InputError
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.policies.drawing import ActedEpisodes, make_draws, mask_illegal
from escalade.policies.modules import State, check_layers, first_states, is_stateful, layers_of, tensors_of
from escalade.policies.networks import as_array, batched_network, build, from_vector, frozen_state, layout_of
from escalade.policies.normalizer import CLIP, Normalization, normalize
from escalade.policies.policy_file import INVERSE_STD, KIND, PolicyFile
from escalade.policies.population.layout import copy_on_cpu, on_cpu
from escalade.policies.population.stack import Stack
from escalade.policies.population.torch_network import Batching, TorchNetwork
from escalade.storage.files import AnyPath, path_of
from escalade.storage.run_folder import RunFolder, located
from escalade.storage.tensors import write
from escalade.support.exact import cpu_by_default

_BUILD_OPTIONS = ("policy", "hidden", "activation", "bias")


def network_inputs(policy: Any, observations: Tensor) -> Tensor:
    """Convert observations to the inputs of a policy's (or its export's) network: scaled, flat, float32."""
    if policy.normalized:
        moments = policy.observation_mean, policy.observation_inverse_std
        flat = normalize(observations.double().flatten(1), *moments, policy.observation_clip)
        observations = flat.reshape(observations.shape)
    elif observations.dtype == torch.uint8:
        observations = observations.float() / 255
    if policy.takes_vectors:
        observations = observations.flatten(1)
    return observations.float()


class Policy(nn.Module):
    """Policy from observation to action: normalization, network and action map.

    ``network`` is an nn.Module from flattened observations (batch, inputs), or from images
    (batch, C, H, W), to raw outputs (batch, outputs). Pixels, which are uint8, are divided by 255;
    with ``normalize_images`` they are normalized instead, as vectors are. If the network is on a different
    device, the policy holds a copy of it on the CPU.

    ``architecture`` holds the arguments with which :func:`escalade.policies.networks.build` rebuilds the
    network. It is empty for a user's module.
    """

    def __init__(
        self,
        network: nn.Module,
        observation_space: Any,
        actions: ActionMap,
        *,
        env_id: str = "",
        architecture: dict[str, Any] | None = None,
        normalize_images: bool = False,
    ) -> None:
        super().__init__()
        layout_of(network)  # raises an error if something cannot evolve, before anything is copied
        self.network = on_cpu(network)
        frozen_state(self.network)  # raises an error if something cannot be saved
        self.observation_space = observation_space
        self.actions = actions
        self.env_id = env_id
        self.architecture = architecture or {}
        size = moments_size(observation_space, normalize_images)
        self.normalized = False
        self.observation_clip = CLIP
        self.observation_count = 0.0
        self.observation_mean: Tensor
        self.observation_inverse_std: Tensor
        self.register_buffer("observation_mean", torch.zeros(size, dtype=torch.float64, device="cpu"))
        ones = torch.ones(size, dtype=torch.float64, device="cpu")
        self.register_buffer("observation_inverse_std", ones)
        self._map = actions.compile()
        draws = make_draws(actions)
        self._drawn = None if draws is None else ActedEpisodes(draws)
        self._state: State | None = None
        self.batching = Batching()
        self._check()

    def _check(self) -> None:
        batched, outputs = self.batched, self.actions.outputs
        self.takes_vectors = isinstance(batched, Stack) and len(batched.layers[0].inputs) == 1
        if isinstance(batched, TorchNetwork):
            self.batching = batched.check(observation_shape(self.observation_space), outputs)
            return
        size = observation_size(self.observation_space)
        if (batched.inputs, batched.outputs) != (size, outputs):
            raise InputError(
                f"size mismatch: the policy has {batched.inputs} inputs and {batched.outputs} outputs, but "
                f"the environment needs {size} and {outputs}"
            )

    @property
    def batched(self) -> Stack | TorchNetwork:
        """The network for a whole population, with the current shapes and frozen parameters."""
        return batched_network(self.network, observation_shape(self.observation_space))

    def set(self, vector: Any, normalization: Normalization | None) -> None:
        """Set the parameters, shape (dimension,), and the normalization that they were trained with."""
        from_vector(self.network, vector)
        self._state = None
        if self._drawn is not None:
            self._drawn.begin(None)
        self.normalized = normalization is not None
        if normalization is not None:
            self._set_normalization(normalization)

    def _set_normalization(self, normalization: Normalization) -> None:
        self.observation_clip, self.observation_count = normalization.clip, normalization.count
        self.observation_mean.copy_(torch.from_numpy(normalization.mean))
        self.observation_inverse_std.copy_(torch.from_numpy(normalization.inverse_std))

    @property
    def normalization(self) -> Normalization | None:
        """Mean and deviation for normalizing observations, or None if they are not normalized."""
        if not self.normalized:
            return None
        mean, inverse_std = self.observation_mean.numpy(), self.observation_inverse_std.numpy()
        return Normalization(mean.copy(), inverse_std.copy(), self.observation_clip, self.observation_count)

    @property
    def layers(self) -> list[str] | None:
        """Class names of a user's module and its submodules, or None for a network of Escalade."""
        return None if self.architecture else layers_of(self.network)

    @property
    def stateful(self) -> bool:
        """True if the network has a state within an episode."""
        return is_stateful(self.network)

    def forward(self, observations: Tensor, state: State | None = None) -> Any:
        """Return raw outputs (batch, outputs) for observations (batch, inputs) or images (batch, C, H, W).

        With a stateful network, pass the batch's state too; the result is a pair of outputs and next state.

        Raises:
            InputError: the observations are not a tensor.
        """
        if not isinstance(observations, Tensor):
            raise InputError(
                f"a policy must be called with a tensor, not a {type(observations).__name__}; "
                "use policy.act for an observation"
            )
        seen = network_inputs(self, observations)
        return self.network(seen, state) if self.stateful else self.network(seen)

    def first_state(self, seeds: Sequence[int]) -> State:
        """Return the network's initial state for a batch of episodes with these seeds."""
        with torch.no_grad(), cpu_by_default():
            return first_states(self.network, seeds)

    def reset(self, seed: int | Sequence[int] = 0) -> None:
        """Begin an episode: reset the network's state and the random draws of actions.

        After creating or loading a policy, or setting its parameters, the first episode begins by itself with
        seed 0 (in a batch, the draws of actions use the seeds 0, 1, 2 and so on).

        Args:
            seed: seed of the episode, for the draws of actions and of the initial state, if there are any; a
                list of seeds for a batch of episodes.
        """
        seeds = [int(seed)] if isinstance(seed, int | np.integer) else [int(one) for one in seed]
        if self._drawn is not None:
            self._drawn.begin(seeds)
        if self.stateful:
            self._state = self.first_state(seeds)

    def act(self, observation: Any, *, action_mask: Any = None, deterministic: bool = False) -> Any:
        """Return the environment's action for one of its observations, or actions for a batch.

        A policy with the head ``sample`` draws its actions as in training, by the episode's seed (see
        :meth:`reset`) and the number of calls since then. Other policies return the best action.

        For a batch of observations from a vector environment, the result has one action per observation: an
        array with the batch first, or a dict or tuple of such arrays. A stateful network continues from the
        state of the last call; see :meth:`reset`.

        Args:
            observation: an observation, or a batch, of the policy's space.
            action_mask: ``info["action_mask"]`` of the last step or reset, with 0 for illegal actions; for a
                batch, one row per observation. None means the entry ``action_mask`` of a Dict observation.
            deterministic: True to return the best action even if the policy draws its actions.

        Raises:
            InputError: the observation is not of the policy's space or has NaN, the size of the batch differs
                from that of the state or the seeds, or the mask has the wrong size.
        """
        seen, batched = as_batch(self.observation_space, observation)
        batch = torch.from_numpy(seen)
        with torch.no_grad(), cpu_by_default():
            outputs: NDArray[Any] = (self._next(batch) if self.stateful else self.forward(batch)).numpy()
        if self._drawn is not None and not deterministic:
            outputs = outputs + self._drawn.noise(len(batch))
        if action_mask is None and isinstance(observation, dict) and maskable(self.actions.space):
            action_mask = observation.get(MASK)
        if action_mask is not None:
            rows = action_mask if batched else [action_mask]
            outputs = mask_illegal(outputs, read_masks(self.actions.space, rows, len(batch)))
        actions = self._map(outputs)
        if self.actions.parts:
            return as_batch_of_parts(self.actions.space, actions) if batched else actions[0]
        if batched:
            return actions
        return int(actions[0]) if isinstance(self.actions.space, spaces.Discrete) else np.asarray(actions[0])

    def _next(self, batch: Tensor) -> Tensor:
        """Return raw outputs, and advance the state by one step."""
        if self._state is None:
            self._state = self.first_state([0] * len(batch))
        rows = {len(part) for part in tensors_of(self._state)}  # empty for a Chain without a stateful layer
        if rows - {len(batch)}:
            raise InputError(
                f"the state is that of {min(rows)} episodes, not {len(batch)}; call policy.reset([...]) "
                "with one seed per episode"
            )
        raw, self._state = self.forward(batch, self._state)
        return cast("Tensor", raw)

    def save(self, path: AnyPath) -> None:
        """Save the policy to one safetensors file.

        Raises:
            InputError: a file cannot be created at ``path``.
            StorageFailure: the disk is full or unavailable.
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
            "observation_count": self.observation_count,
            "architecture": self.architecture,
            "layers": self.layers,
        }
        write(path_of(path), tensors, state)


def _policy_in(folder: Path) -> Path:
    """Return the policy's file in a run folder.

    Raises:
        InputError: the file does not exist, because the run is not finished.
    """
    run = RunFolder(folder)
    if not run.policy.exists() and run.config.exists() and run.checkpoints.generations():
        raise InputError(
            f"{folder} has no {run.policy.name}, because the run is not finished; resume the run, or "
            "evaluate or export its latest checkpoint"
        )
    return run.policy


def load(path: AnyPath, network: nn.Module | None = None) -> Policy:
    """Load a policy from a run folder, from its ``policy.safetensors``, or from the package: ``zoo:NAME``.

    Policies trained from a user's module need ``network``, because no code is loaded from the file.

    Raises:
        InputError: the policy does not exist or is damaged, or ``network`` does not fit it.
    """
    file = located(path)
    if file.is_dir():
        file = _policy_in(file)
    saved = PolicyFile.read(file)
    if network is None:
        if not saved.architecture:
            raise InputError(
                f"{file} was trained from your own module; pass one like it as load(path, network=...)"
            )
        shape = observation_shape(saved.observation_space)
        network = build(inputs=shape, outputs=saved.actions.outputs, **saved.architecture)
    elif isinstance(network, nn.Module):
        check_layers(network, saved.layers)
        network = copy_on_cpu(network)  # the caller may use the module for other runs too
    else:
        raise InputError(
            f"network must be an nn.Module, not {network!r}; for the best policy, load RUN/best.safetensors"
        )
    policy = Policy(
        network,
        saved.observation_space,
        saved.actions,
        env_id=saved.env,
        architecture=saved.architecture,
        normalize_images=saved.normalized,
    )
    try:
        policy.network.load_state_dict({name: torch.from_numpy(part) for name, part in saved.weights.items()})
    except RuntimeError as problem:
        reason = " ".join(str(problem).split())
        raise InputError(f"the network does not fit {file}: {reason}") from None
    policy.normalized = saved.normalized
    policy._set_normalization(saved.normalization)
    return policy.eval()


def architecture_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with which :func:`escalade.policies.networks.build` rebuilds a network."""
    chosen = {name: options[name] for name in _BUILD_OPTIONS}
    hidden = chosen["hidden"]
    if hidden is None:
        hidden = ARCHITECTURES[chosen["policy"]].hidden if chosen["policy"] in ARCHITECTURES else ()
    return chosen | {"hidden": list(hidden)}
