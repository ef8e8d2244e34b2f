"""PGPE with ClipUp of EvoTorch, on its vectorized Gymnasium problem with two actors: see pgpe.toml.

python benchmarks/peers/pgpe.py TASK [--seed 1] [--seconds 600]
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import torch
from evotorch.algorithms import PGPE
from evotorch.neuroevolution import VecGymNE
from gymnasium.spaces import Discrete
from judge import Done, Judge, arguments, settings


def acting(policy: Any, space: Any) -> Any:
    """Actions of a policy that ``to_policy`` made."""

    @torch.no_grad()
    def act(observations: Any) -> Any:
        raw = policy(torch.as_tensor(observations, dtype=torch.float32)).numpy()
        return raw.argmax(axis=1) if isinstance(space, Discrete) else np.clip(raw, space.low, space.high)

    return act


def main() -> None:
    args = arguments()
    task = args.task
    given = settings("pgpe", "mujoco" if task.name.endswith("-v5") else "classic", task.name)
    judge = Judge(task, args.seed, args.seconds)
    if "stdev_init" in given:
        given.pop("radius_init")
    torch.manual_seed(args.seed)
    problem = VecGymNE(
        f"gym::{task.env}",
        given.pop("network"),
        env_config=task.kwargs,
        observation_normalization=given.pop("normalize"),
        decrease_rewards_by=given.pop("decrease_rewards_by", None),
        num_actors=2,
    )
    searcher = PGPE(
        problem,
        stdev_learning_rate=0.1,
        optimizer="clipup",
        optimizer_config={"max_speed": given.pop("max_speed")},
        ranking_method="centered",
        **given,
    )
    with suppress(Done):
        while True:
            searcher.step()
            # Float: MuJoCo's observations are doubles, and so is the normalization that it makes of them.
            policy = problem.to_policy(searcher.status["center"]).float()
            judge.look(acting(policy, judge.space), searcher.status["total_interaction_count"])


if __name__ == "__main__":
    main()
