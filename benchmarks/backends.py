"""Steps per second of each backend: the basis of ``--backend auto``.

    python benchmarks/backends.py [ENV ...]
    python benchmarks/backends.py --train [ENV ...]

For each environment, alternating rounds of whole seeded episodes in one process. Environments are created
(EnvPool) or reset (the others) as in training. Medians, in steps per second of processor time. With
``--train``, rounds of ``escalade train ENV --workers 0`` with its preset, without the first generation.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import escalade
from escalade.envs import Environment, resolve, vectorize
from escalade.envs.backends import BACKENDS

ENVIRONMENTS = [
    "CartPole-v1",
    "Acrobot-v1",
    "Pendulum-v1",
    "LunarLander-v3",
    "BipedalWalker-v3",
    "Reacher-v5",
    "Pusher-v5",
    "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5",
    "Swimmer-v5",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Walker2d-v5",
    "Ant-v5",
    "Humanoid-v5",
]
TRAINED = ["Reacher-v5", "HalfCheetah-v5"]
COMPARED = ["gymnasium", "envpool", "mujoco"]
SLOTS = 32


def turn(environment: Environment, seconds: float, first_seed: int) -> float:
    """Return steps per second over waves of whole episodes with random actions."""
    vector = vectorize(environment, SLOTS)
    everyone = np.arange(SLOTS)
    vector.reset(everyone, everyone)  # the first wave builds what later ones reuse
    actions = [np.array([environment.action_space.sample() for _ in everyone]) for _ in range(16)]
    began, steps = time.process_time(), 0
    while time.process_time() - began < seconds:
        first_seed += SLOTS
        vector.reset(everyone, everyone + first_seed)
        running = everyone
        while len(running):
            _, _, ended = vector.step(running, actions[steps % 16][running])
            steps += len(running)
            running = running[~ended]
    spent = time.process_time() - began
    vector.close()
    return steps / spent


class Clock:
    """A recorder of processor time and training steps, one pair a generation."""

    def __init__(self) -> None:
        self.times: list[tuple[float, int]] = []

    def generation(self, row: Any) -> None:
        self.times.append((time.process_time(), row.columns()["env_steps"]))

    def note(self, text: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def training(environment: Environment, generations: float, seed: int) -> float:
    """Return training steps per second with the preset, without the first generation."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        escalade.train(
            environment.id,
            backend=environment.backend,
            generations=int(generations),
            seed=seed,
            workers=0,
            target_return=None,
            recorders=[clock],
            run_dir=str(Path(folder) / "run"),
            verbose=False,
        )
    (began, before), (ended, after) = clock.times[0], clock.times[-1]
    return (after - before) / (ended - began)


def compared(name: str, measure: Callable[[Environment, float, int], float], arguments: Any) -> str:
    """Return a table row: each backend's median, and the last one's ratio to the others."""
    environment = resolve(name)
    able = [
        backend
        for backend in COMPARED
        if BACKENDS[backend].installed and BACKENDS[backend].load().supports(environment)
    ]
    rates: dict[str, list[float]] = {backend: [] for backend in able}
    amount = arguments.generations if arguments.train else arguments.seconds
    for number in range(arguments.rounds):
        for backend, found in rates.items():
            found.append(measure(replace(environment, backend=backend), amount, 1000 * number))
    medians = {backend: statistics.median(found) for backend, found in rates.items()}
    best = medians[able[-1]]
    cells = [f"{medians[backend]:,.0f}" if backend in medians else "" for backend in COMPARED]
    cells += [f"{best / medians[backend]:.2f}" if backend in able[:-1] else "" for backend in COMPARED[:2]]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--generations", type=int, default=8)
    arguments = parser.parse_args()
    print("| environment | gymnasium | envpool | mujoco | last / gymnasium | last / envpool |")
    print("| --- | --- | --- | --- | --- | --- |")
    measure, names = (training, TRAINED) if arguments.train else (turn, ENVIRONMENTS)
    for name in arguments.environments or names:
        print(compared(name, measure, arguments), flush=True)


if __name__ == "__main__":
    main()
