"""PPO of Stable-Baselines3, as rl-baselines3-zoo sets it: see ppo.toml.

    python benchmarks/peers/ppo.py TASK [--seed 1] [--seconds 600]

Environments are stepped in turn in the training process (DummyVecEnv), which is the library's default and its
documentation's advice for environments as light as these.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from judge import Done, Judge, arguments, settings
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize


class Shown(BaseCallback):
    """Callback that passes the policy to the judge after each update."""

    def __init__(self, judge: Judge) -> None:
        super().__init__()
        self.judge = judge

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self.judge.look(acting(self.model), self.num_timesteps)


def acting(model: Any) -> Any:
    """Return the model's deterministic actions."""
    scale = model.get_vec_normalize_env()

    def act(observations: Any) -> Any:
        seen = scale.normalize_obs(observations) if scale else observations
        return model.predict(seen, deterministic=True)[0]

    return act


def environments(task: Any, seed: int, given: dict[str, Any], **normalize: Any) -> Any:
    """Return the library's vector of environments, normalized if the settings require it."""
    made = make_vec_env(task.make, given.pop("n_envs", 1), seed=seed)
    return VecNormalize(made, **normalize) if given.pop("normalize", False) else made


def falling(value: Any) -> Any:
    """Return "lin_X" as a schedule from X to 0, and any other value unchanged."""
    if not isinstance(value, str):
        return value
    start = float(value.removeprefix("lin_"))
    return lambda left: left * start


def policy_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the policy's options, with its activation as a class."""
    options = dict(given.pop("policy", {}))
    if "activation_fn" in options:
        options["activation_fn"] = getattr(torch.nn, options["activation_fn"])
    return options


def main() -> None:
    args = arguments()
    task, given = args.task, settings("ppo", args.task.settings)
    judge, timesteps = Judge(task, args.seed, args.seconds), given.pop("timesteps")
    envs = environments(task, args.seed, given, gamma=given.get("gamma", 0.99))
    options = policy_options(given)
    for name in ("learning_rate", "clip_range"):
        if name in given:
            given[name] = falling(given[name])
    model = PPO("MlpPolicy", envs, seed=args.seed, device="cpu", policy_kwargs=options, **given)
    with suppress(Done):
        while True:  # the published number of steps, then more at the last rates while there is time
            model.learn(timesteps, callback=Shown(judge), reset_num_timesteps=False)


if __name__ == "__main__":
    main()
