"""Every strategy on five control tasks, with one step budget, a linear policy, 64 members and its defaults.

    python benchmarks/strategies.py run [--tasks TASK ...] [--strategies NAME ...] [--seeds 1 2 3]
    python benchmarks/strategies.py cost       # of a generation, in milliseconds and memory
    python benchmarks/strategies.py picture    # docs/images/strategies.png

``run`` adds a line to results/strategies.jsonl for each strategy, task and seed that is not there yet. Each
run takes one process. It ends when 100 fresh episodes of the center reach the target, or after BUDGET env
steps of training, so only the seconds depend on the machine. tables.py makes the table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import presets
import settings
from escalade.strategies.registry import STRATEGIES
from peers import tasks as peers

HERE = Path(__file__).parent
RESULTS, PICTURE = HERE / "results" / "strategies.jsonl", HERE.parent / "docs" / "images" / "strategies.png"
DIMENSIONS = (100, 1000, 100_000)
SQUARED = ("cma-es", "ma-es", "xnes")
SHOWN = [(1, "#4477dd"), (12, "#cc66aa"), (40, "#e69f00")]
BUDGET = 500_000
TASKS = {
    "CartPole-v1": 24,
    "Acrobot-v1": -497,
    "LunarLander-v3": -192,
    "Swimmer-v5": -3,
    "HalfCheetah-v5": -261,
}
"""The mean return of random actions on each: 100 episodes, of the last two 20."""
Line = dict[str, Any]


def run(strategy: str, task: str, seed: int) -> Line:
    """Run once and return the result line."""
    options = {"strategy": strategy, "target_return": peers.TASKS[task].target, "env_steps": BUDGET}
    options |= {"policy": "linear", "population": 64}
    found = settings.run(peers.TASKS[task].env, options, seed)
    return {"strategy": strategy, "task": task} | {
        key: value for key, value in found.items() if key not in ("env", "options")
    }


def table(lines: list[Line]) -> str:
    """Return a row per strategy, the best score first: solved runs of a task, with steps or the return."""
    rows = []
    for strategy in STRATEGIES:
        runs = {
            task: [line for line in lines if (line["strategy"], line["task"]) == (strategy, task)]
            for task in TASKS
        }
        scores = [statistics.median(map(score, found)) for found in runs.values() if found]
        mean = statistics.mean(scores) if len(scores) == len(TASKS) else math.nan
        solved = sum(line["solved"] for found in runs.values() for line in found)
        cells = [*map(_cell, runs.values()), f"{solved} of {sum(map(len, runs.values()))}", f"{mean:.2f}"]
        rows.append([f"`{strategy}`", *cells])
    rows.sort(key=lambda row: row[-1], reverse=True)
    return presets.markdown(["strategy", *TASKS, "solved", "score"], rows)


def score(line: Line) -> float:
    """Return 0 for the return of random actions or less, and 1 for the target or more."""
    low, high = TASKS[line["task"]], peers.TASKS[line["task"]].target
    return float(np.clip((line["eval_return_mean"] - low) / (high - low), 0, 1))


def _cell(runs: list[Line]) -> str:
    if not runs:
        return "not run"
    steps = [line["env_steps"] if line["solved"] else math.inf for line in runs]
    solved = f"{sum(line['solved'] for line in runs)} of {len(runs)}: "
    if (median := statistics.median(steps)) < math.inf:
        return f"{solved}{median / 1000:,.0f} k"
    return f"{solved}return {statistics.median(line['eval_return_mean'] for line in runs):.4g}"


def run_all(tasks: list[str], seeds: list[int], strategies: list[str]) -> None:
    """Run all missing measurements."""
    for task, seed, strategy in itertools.product(tasks, seeds, strategies):
        there = {(line["strategy"], line["task"], line["seed"]) for line in presets.lines_of(RESULTS)}
        if (strategy, task, seed) in there:
            continue
        line = run(strategy, task, seed)
        if line["stop_reason"] == "interrupted":
            return
        with RESULTS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        print(line, flush=True)


def picture() -> None:
    """Draw members of every strategy in a bent valley at three generations, and the center's path."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    side = np.linspace(-1, 1, 200)
    x, y = np.meshgrid(1.5 * side + 0.1, 1.3 * side + 0.5)
    columns = 4
    figure, panels = plt.subplots(
        -(-len(STRATEGIES) // columns),
        columns,
        figsize=(10, 10.4),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for axes in panels.flat[len(STRATEGIES) :]:
        axes.set_axis_off()
    for axes, (name, entry) in zip(panels.flat, STRATEGIES.items(), strict=False):
        axes.contour(x, y, np.log10(valley(np.stack([x, y], -1)) + 1e-3), 12, colors="0.8", linewidths=0.6)
        es = entry.load()(np.array([-1.0, 0.9]), 24, sigma=0.1, direction="minimize", seed=1)
        way = []
        for generation in range(1, SHOWN[-1][0] + 1):
            members = es.ask().numpy()
            way.append(es.center.numpy().copy())
            for shown, color in SHOWN:
                if shown == generation:
                    axes.scatter(*members.T, s=7, color=color, label=f"generation {shown}", zorder=3)
            es.tell(valley(members))
        axes.plot(*np.array(way).T, color="black", linewidth=0.8)
        axes.plot(1, 1, "*", color="black", markersize=7)
        axes.set(title=name, xlim=(x.min(), x.max()), ylim=(y.min(), y.max()), xticks=[], yticks=[])
    figure.legend(*panels.flat[0].get_legend_handles_labels(), ncols=len(SHOWN), loc="outside lower center")
    figure.savefig(PICTURE, dpi=90)


def valley(points: Any) -> Any:
    """A tame version of Rosenbrock's function, whose minimum is at (1, 1)."""
    return 5 * (points[..., 1] - points[..., 0] ** 2) ** 2 + (1 - points[..., 0]) ** 2


def cost() -> str:
    """Print milliseconds of ask and tell with 64 members, and checkpoint sizes, for several dimensions."""
    rows = []
    for name, entry in STRATEGIES.items():
        cells = []
        for dimension in DIMENSIONS:
            if name in SQUARED and dimension > 1000:
                cells.append("-")
                continue
            es = entry.load()(np.zeros(dimension, np.float32), 64)
            spent: list[float] = []
            while len(spent) < 5 or (sum(spent) < 0.5 and len(spent) < 200):
                began = time.perf_counter()
                es.tell(-np.square(es.ask().numpy()[:, :100] - 1).sum(axis=1))
                spent.append(time.perf_counter() - began)
            cells.append(f"{1000 * statistics.median(spent):.2g}")
            tensors = [value for value in es.state_dict().values() if isinstance(value, torch.Tensor)]
            per = sum(value.numel() for value in tensors if value.numel() >= dimension) / dimension
        cells.append(f"{per:.0f}" if name not in SQUARED else "their number")
        rows.append([f"`{name}`", *cells])
    return presets.markdown(
        ["strategy", *(f"{n:,}" for n in DIMENSIONS), "numbers kept for each parameter"], rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["run", "cost", "picture"])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    arguments = parser.parse_args()
    if arguments.what == "cost":
        print(cost())
    elif arguments.what == "picture":
        picture()
    else:
        run_all(arguments.tasks, arguments.seeds, arguments.strategies)


if __name__ == "__main__":
    main()
