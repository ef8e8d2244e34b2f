"""Which backend steps an environment faster: what ``--backend auto`` rests on.

    python benchmarks/backends.py [ENV ...]

For each environment, alternating turns of whole seeded episodes on one core, environments made
(EnvPool) or reset (Gymnasium) as training does it; medians, in steps a second.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import numpy as np

from escalade.envs import Environment, resolve, vectorize
from escalade.envs.envpool_backend import supports
from escalade.errors import EscaladeError

ENVIRONMENTS = [
    "CartPole-v1",
    "Acrobot-v1",
    "Pendulum-v1",
    "LunarLander-v3",
    "BipedalWalker-v3",
    "Swimmer-v5",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Walker2d-v5",
    "Ant-v5",
    "Humanoid-v5",
]
SLOTS = 32


def turn(environment: Environment, seconds: float, first_seed: int) -> float:
    """Steps a second over waves of whole episodes with random actions."""
    vector = vectorize(environment, SLOTS)
    everyone = np.arange(SLOTS)
    vector.reset(everyone, everyone)  # the first wave builds what later ones reuse
    actions = [np.array([environment.action_space.sample() for _ in everyone]) for _ in range(16)]
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        first_seed += SLOTS
        vector.reset(everyone, everyone + first_seed)
        running = everyone
        while len(running):
            _, _, ended = vector.step(running, actions[steps % 16][running])
            steps += len(running)
            running = running[~ended]
    spent = time.perf_counter() - began
    vector.close()
    return steps / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*", default=ENVIRONMENTS)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| environment | gymnasium | envpool | envpool / gymnasium |\n| --- | --- | --- | --- |")
    for name in arguments.environments:
        try:
            environment = resolve(name)
        except EscaladeError as problem:
            print(f"| {name} | {problem} | | |")
            continue
        if not supports(environment):
            print(f"| {name} | not in EnvPool | | |")
            continue
        rates: dict[str, list[float]] = {"gymnasium": [], "envpool": []}
        for number in range(arguments.rounds):
            for backend, found in rates.items():
                found.append(turn(replace(environment, backend=backend), arguments.seconds, 1000 * number))
        plain, pool = (statistics.median(found) for found in rates.values())
        print(f"| {name} | {plain:,.0f} | {pool:,.0f} | {pool / plain:.2f} |", flush=True)


if __name__ == "__main__":
    main()
