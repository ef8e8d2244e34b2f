"""SAC of SBX (Stable-Baselines in JAX), with its defaults.

    python benchmarks/peers/sac.py TASK [--seed 1] [--seconds 600]

Actions must be continuous. Compilation counts towards the time.
"""

from __future__ import annotations

from contextlib import suppress

from judge import Done, Judge, arguments
from ppo import Shown, environments
from sbx import SAC


def main() -> None:
    args = arguments()
    judge = Judge(args.task, args.seed, args.seconds)
    model = SAC("MlpPolicy", environments(args.task, args.seed, {}), seed=args.seed)
    with suppress(Done):
        model.learn(10**9, callback=Shown(judge))


if __name__ == "__main__":
    main()
