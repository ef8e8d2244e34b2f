"""Share of different actions of perturbed networks, with and without virtual batch normalization.

    python benchmarks/virtual_batch.py [ENV ...]

The network `openai-atari` and the same layers with biases instead of normalization are perturbed, and each
perturbed network is shown frames of random play that are not in the reference batch. `other action` is the
share of frames on which its action differs from that of the unperturbed network; `varied action`, the share
on which it does not take the one action that it takes most often. Means over perturbations and seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from escalade.config.options import Config
from escalade.envs import ActionMap
from escalade.perturbation import DensePopulation
from escalade.policies.modules import VirtualBatchNorm
from escalade.policies.networks import batched_network, build, to_vector
from escalade.rollout.reference import reference_batch
from escalade.support.exact import one_thread
from escalade.training.environments import find_environment
from escalade.training.parts import make_policy

PIXELS = {"grayscale": True, "resize": (84, 84), "frame_skip": "4:max", "frame_stack": 4}
FRAMES, MEMBERS, SEEDS = 64, 16, 3

Array = NDArray[np.float32]


def without_normalization(network: nn.Sequential) -> nn.Sequential:
    """Return the network with the same first weights, and zero biases in place of the normalization."""
    layers: list[nn.Module] = []
    for layer in network:
        if isinstance(layer, VirtualBatchNorm):
            before: Any = layers[-1]
            before.bias = nn.Parameter(layer.bias.detach().clone())
        else:
            layers.append(layer)
    return nn.Sequential(*layers)


def chosen(network: nn.Sequential, frames: Array) -> Callable[[Array], NDArray[np.int64]]:
    """Return the action on each frame for these parameters."""
    forward = batched_network(network, frames.shape[1:]).forward(1)

    def act(parameters: Array) -> NDArray[np.int64]:
        forward.load(0, DensePopulation(parameters[None]), 0)
        return np.array([forward(frame[None])[0].argmax() for frame in frames])

    return act


def shares(network: nn.Sequential, frames: Array, sigma: float, seed: int) -> tuple[float, float]:
    """Return the share of other actions, and of varied ones."""
    center, act = to_vector(network), chosen(network, frames)
    chance, before = np.random.default_rng(seed), act(center)
    other, varied = [], []
    for _ in range(MEMBERS):
        actions = act(center + np.float32(sigma) * chance.standard_normal(len(center), np.float32))
        other.append((actions != before).mean())
        varied.append(1 - np.bincount(actions).max() / len(actions))
    return float(np.mean(other)), float(np.mean(varied))


def measure(env: str, init: str, sigma: float) -> list[float]:
    """Return both shares with normalization, then both without."""
    rows = []
    for seed in range(SEEDS):
        config = Config(env=env, policy="openai-atari", init=init, seed=seed, **PIXELS)  # type: ignore[arg-type]
        environment = find_environment(config)
        network: Any = make_policy(config, environment).network
        actions = ActionMap(environment.action_space)
        frames = reference_batch(environment, actions, seed + 1000, FRAMES).astype(np.float32) / 255
        plain = without_normalization(
            build(config.policy, frames.shape[1:], actions.outputs, init=init, seed=seed)
        )
        rows.append([*shares(network, frames, sigma, seed), *shares(plain, frames, sigma, seed)])
    return np.mean(rows, axis=0).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("envs", nargs="*", default=["ALE/Pong-v5", "ALE/SpaceInvaders-v5"], metavar="ENV")
    parser.add_argument("--sigmas", nargs="+", type=float, default=[0.005, 0.02, 0.05])
    arguments = parser.parse_args()
    print("| environment | init | sigma | other action, with | without | varied action, with | without |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with one_thread():
        for env in arguments.envs:
            for init in ("normc", "orthogonal", "xavier"):
                for sigma in arguments.sigmas:
                    other, varied, plain_other, plain_varied = measure(env, init, sigma)
                    shown = (f"{share:.2f}" for share in (other, plain_other, varied, plain_varied))
                    print(f"| {env} | {init} | {sigma} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
