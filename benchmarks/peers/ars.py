"""ARS of sb3-contrib, as rl-baselines3-zoo sets it: see ars.toml.

    python benchmarks/peers/ars.py TASK [--seed 1] [--seconds 600]

With two processes for its environments (AsyncEval), as its documentation shows.
"""

from __future__ import annotations

from contextlib import suppress

from judge import Done, Judge, arguments, settings
from ppo import Shown, environments, policy_options
from sb3_contrib import ARS
from sb3_contrib.common.vec_env import AsyncEval


def main() -> None:
    args = arguments()
    task, given = args.task, settings("ars", args.task.settings)
    judge = Judge(task, args.seed, args.seconds)
    kind = "MlpPolicy" if "policy" in given else "LinearPolicy"
    options, normalize = policy_options(given), given.get("normalize", False)
    envs = environments(task, args.seed, given, norm_reward=False)
    model = ARS(kind, envs, seed=args.seed, device="cpu", policy_kwargs=options, **given)

    def one() -> object:
        return environments(task, args.seed, {"normalize": normalize}, norm_reward=False)

    workers = AsyncEval([one, one], model.policy)
    with suppress(Done):
        while True:
            model.learn(10**8, callback=Shown(judge), async_eval=workers, reset_num_timesteps=False)


if __name__ == "__main__":
    main()
