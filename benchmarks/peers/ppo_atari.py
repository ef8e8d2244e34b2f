"""PPO of Stable-Baselines3 on an ALE game with a time limit on one core; prints a row for atari.jsonl.

    PEERS/bin/python benchmarks/peers/ppo_atari.py Pong --seed 1 >> benchmarks/results/atari.jsonl

The settings are rl-baselines3-zoo's for Atari (hyperparams/ppo.yml): schedules end after 10 million steps.
Evaluated as in the zoo, with drawn actions and with FIRE after a reset; otherwise as benchmarks/atari.py
evaluates Escalade.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from typing import Any

import ale_py
import gymnasium
import numpy as np
import torch
from machine import processor
from stable_baselines3 import PPO
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

STEPS = 10_000_000
FRAMES = 18_000
"""Frames after which an episode of the evaluation ends."""


class Stop(BaseCallback):
    """Ends training once the process has used its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def _on_step(self) -> bool:
        return time.process_time() < self._seconds


def games(game: str, count: int, seed: int, training: bool) -> VecFrameStack:
    """Return games with the zoo's wrappers; for evaluation, whole and with unclipped rewards."""
    own = {} if training else {"max_num_frames_per_episode": FRAMES}
    given = {"frameskip": 1, "repeat_action_probability": 0.0, **own}
    how = {"terminal_on_life_loss": training, "clip_reward": training}

    def made(**kwargs: Any) -> gymnasium.Env[Any, Any]:
        return gymnasium.make(f"ALE/{game}-v5", **kwargs)

    envs = make_vec_env(
        made,
        count,
        seed,
        env_kwargs=given,
        wrapper_class=AtariWrapper,
        wrapper_kwargs=how,
        vec_env_cls=DummyVecEnv,
    )
    return VecFrameStack(envs, 4)


def evaluated(model: PPO, game: str, episodes: int) -> list[float]:
    """Return the returns of fresh episodes."""
    env, returns = games(game, 1, 10_000, training=False), []
    while len(returns) < episodes:
        seen, over, total = env.reset(), False, 0.0
        while not over:
            actions, _ = model.predict(seen, deterministic=False)
            seen, rewards, ended, _ = env.step(actions)
            total, over = total + float(rewards[0]), bool(ended[0])
        returns.append(total)
    return returns


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("game")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--episodes", type=int, default=100)
    asked = parser.parse_args()
    gymnasium.register_envs(ale_py)
    torch.set_num_threads(1)
    model = PPO(
        "CnnPolicy",
        games(asked.game, 8, asked.seed, training=True),
        n_steps=128,
        n_epochs=4,
        batch_size=256,
        learning_rate=lambda left: left * 2.5e-4,
        clip_range=lambda left: left * 0.1,
        vf_coef=0.5,
        ent_coef=0.01,
        seed=asked.seed,
    )
    model.learn(STEPS, callback=Stop(asked.minutes * 60))
    returns = evaluated(model, asked.game, asked.episodes)
    row = {
        "by": "ppo",
        "game": asked.game,
        "seed": asked.seed,
        "minutes": asked.minutes,
        "env_steps": model.num_timesteps,
        "mean": float(np.mean(returns)),
        "std": float(np.std(returns)),
        "min": min(returns),
        "max": max(returns),
        "processor": processor(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
