"""Create the policies of the package's zoo from finished runs of the presets.

    escalade train CartPole-v1 --seed 1 --run-dir runs/CartPole-v1-1
    python benchmarks/zoo.py runs/CartPole-v1-1 ...

Each solved run becomes src/escalade/zoo/NAME: its policy, its config without machine-specific options, and
its summary, whose score is that of ``escalade eval`` over 100 fresh episodes. NAME is that of the preset, or
of the game of ALE. There is one policy of each: that of the first seed from 1 on that solves it, not the best
of many.
"""

from __future__ import annotations

import shutil
import sys

import escalade
from escalade.config.files import read_config, write_config
from escalade.storage.run_folder import ZOO, ZOO_PREFIX, RunFolder


def add(run: str) -> str:
    """Add a run's policy to the zoo and return a message about it."""
    source = RunFolder.open(run)
    config, summary = read_config(source), source.read_summary()
    if not summary["solved"]:
        raise SystemExit(f"{run} did not solve its task")
    # All games share a preset, so a game's policy is named after the game.
    name = config.env.removeprefix("ALE/") if config.env.startswith("ALE/") else config.preset
    if name is None:
        raise SystemExit(f"{run} used no preset")
    place = RunFolder(ZOO / name)
    place.path.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.policy, place.policy)
    # What was this machine's, or the budget of an evening, is left to whoever plays or trains on.
    write_config(place, config.replace(run_dir=None, seconds=None, workers=None, backend="auto"))
    score = escalade.evaluate(ZOO_PREFIX + name)
    summary |= {"eval_return_mean": score.mean, "eval_return_std": score.std}
    place.write_summary(summary | {"eval_episodes": len(score.returns)})
    return f"{ZOO_PREFIX}{name}: {score.mean:.2f} ± {score.std:.2f}, seed {config.seed}"


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(add(each), flush=True)
