"""Long learning runs on pixels, memory and PyBullet: store their results, and make their table.

    python benchmarks/learning.py RUN ...   # evaluates runs, copies their files to results/learning

A run comes from `escalade train ENV --seconds N`. Its config, progress.csv and curve are stored, and an
evaluation of its best policy over fresh episodes, evaluation.json. tables.py makes the table.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tomllib
from pathlib import Path
from typing import Any

import escalade
import presets
from escalade.config.conversion import to_toml
from escalade.config.files import read_config
from escalade.recorders import read_progress
from escalade.storage.run_folder import RunFolder

HERE = Path(__file__).parent
KEPT = HERE / "results" / "learning"
# Target of each run, as the mean of an evaluation.
BARS = {
    "ALE/Pong-v5": -10.0,
    "ALE/SpaceInvaders-v5": 400.0,
    "CarRacing-v3": 300.0,
    "AntBulletEnv-v0": 2500.0,
    "Humanoid-v5": 6000.0,
}


def keep(run: Path, episodes: int, checkpoint: str) -> None:
    """Evaluate the run's best or latest policy, and copy the files of its learning curve."""
    result = escalade.evaluate(run, episodes=episodes, checkpoint=checkpoint)
    folder = KEPT / run.name
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(run / "progress.csv", folder / "progress.csv")
    config = read_config(RunFolder(run)).replace(run_dir=None)
    if config.start_from is not None:  # by the name it has among the kept runs, not by a path of one machine
        config = config.replace(start_from=Path(config.start_from).name)
    (folder / "config.toml").write_text(to_toml(config))
    escalade.plot([str(run)], folder / "curve.png")
    facts = {
        "policy": checkpoint,
        "episodes": episodes,
        "mean": result.mean,
        "std": result.std,
        "min": float(result.returns.min()),
        "max": float(result.returns.max()),
    }
    (folder / "evaluation.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(f"{run.name}: {result.mean:.1f} over {episodes} episodes")


def row(folder: Path) -> dict[str, Any]:
    """Return the table row of a stored run, whose config may hold retired options."""
    config = tomllib.loads((folder / "config.toml").read_text())
    progress = read_progress(folder / "progress.csv")
    evaluation = json.loads((folder / "evaluation.json").read_text())
    reached = [
        (seconds, steps)
        for seconds, steps, mean in zip(
            progress["seconds"], progress["env_steps"], progress["eval_return_mean"], strict=True
        )
        if not math.isnan(mean) and mean > BARS[config["env"]]
    ]
    first = f"{reached[0][0] / 60:.0f} min, {reached[0][1]:,.0f} steps" if reached else "-"
    shown = "{policy}: {mean:.1f} ({min:.0f} to {max:.0f}), {episodes} episodes"
    return {
        "run": f"[{folder.name}](results/learning/{folder.name}/progress.csv)",
        "environment": config["env"],
        "strategy, policy": f"{config['strategy']}, {config['policy']}",
        "workers": config["workers"],
        "minutes": f"{progress['seconds'][-1] / 60:.0f}",
        "env steps": f"{progress['env_steps'][-1]:,.0f}",
        "bar": f"{BARS[config['env']]:g}",
        "first evaluation above it": first,
        "best or latest policy, mean (min to max)": shown.format(**evaluation),
    }


def table() -> str:
    """Return a Markdown table with a row for each stored run."""
    rows = [row(folder) for folder in sorted(KEPT.iterdir())]
    return presets.markdown(list(rows[0]), [[str(cell) for cell in one.values()] for one in rows])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--checkpoint", choices=["best", "latest"], default="best")
    given = parser.parse_args()
    for run in given.runs:
        keep(run, given.episodes, given.checkpoint)


if __name__ == "__main__":
    main()
