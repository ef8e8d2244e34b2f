"""Novelty search compared with evolution strategies on deceptive, sparse and ordinary returns.

    python benchmarks/novelty.py run maze [--methods none ns ...] [--seeds 1 2 ...] [--seconds 300]
    python benchmarks/novelty.py table
    python benchmarks/novelty.py picture
    python benchmarks/novelty.py cost

A run ends when an evaluation of the center, confirmed by 100 episodes, reaches the target, or after the
seconds or the steps. Rows go to results/novelty.jsonl; `table` prints them by task and method. `picture`
draws the end points of the centers in the maze and in the trap, with the trap's curves of returns. `cost`
prints the time that an archive of 100,000 behaviors adds to a generation of CartPole with 128 members.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import escalade
from escalade.recorders import read_progress
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import read
from escalade.strategies.novelty import Archive, Center, Novelty, NoveltyOptions

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import maze
import trap

HERE = Path(__file__).parent
RESULTS, IMAGES = HERE / "results" / "novelty.jsonl", HERE.parent / "docs" / "images"

GROUP = ("task", "method", "centers")
METHODS = ["none", "ns", "nsr", "nsra:patience=5,step=0.1"]


class AtTheGoal(gymnasium.RewardWrapper[Any, Any]):
    """MountainCarContinuous whose reward is 100 at the goal, and 0 before; no cost of actions."""

    def reward(self, reward: Any) -> float:
        return 100.0 if float(reward) > 50 else 0.0


CAR = {"env": "MountainCarContinuous-v0", "preset": None, "strategy": "openai-es", "hidden": (16,)}
CAR |= {"init": "xavier", "population": 32, "sigma": 0.1, "lr": 0.05, "eval_every": 2, "target_return": 90.0}
CAR |= {"behavior": "observation:0:every=50", "normalize_observations": True, "max_episode_steps": 999}
TASKS: dict[str, dict[str, Any]] = {
    "maze": {"env": "maze:Maze-v0", **maze.SETTINGS},
    "car": CAR,
    "trap": {"env": "trap:make", **trap.SETTINGS},
    "sparse car": CAR | {"wrappers": ["novelty:AtTheGoal"]},
    "CartPole-v1": {"env": "CartPole-v1", "behavior": "observation:0,2"},
    "Swimmer-v5": {"env": "Swimmer-v5", "behavior": "observation:0,1"},
    "HalfCheetah-v5": {"env": "HalfCheetah-v5", "behavior": "observation:0,1"},
}


def with_centers(method: str, centers: int) -> str:
    """Return the option ``novelty`` of a method with this number of centers."""
    return f"{method}{',' if ':' in method else ':'}centers={centers}"


def run(task: str, method: str, seed: int, **chosen: Any) -> dict[str, Any]:
    """Run once and return its row. ``chosen``: seconds, env_steps, workers, centers."""
    centers = chosen.pop("centers") if method != "none" else 1
    asked = {"task": task, "method": method, "seed": seed, "centers": centers, "workers": chosen["workers"]}
    options = dict(TASKS[task])
    with tempfile.TemporaryDirectory() as folder:
        options |= chosen | {
            "novelty": None if method == "none" else with_centers(method, centers),
            "seed": seed,
        }
        options |= {"run_dir": f"{folder}/run", "verbose": False}
        env = options.pop("env")
        done = escalade.train(env, **options)
        summary, kept = done.summary, {}
        if task in ("maze", "trap"):
            ends = escalade.evaluate(done, episodes=1 if task == "maze" else 20, workers=0).behaviors
            kept = {"end": ends.mean(axis=0).tolist(), "archive": archive(done.folder)}
        if task == "trap":
            columns = read_progress(done.folder.progress)
            rows = zip(columns["env_steps"], columns["eval_return_mean"], strict=True)
            kept["curve"] = [[int(steps), round(mean, 3)] for steps, mean in rows if np.isfinite(mean)]
    keys = ("stop_reason", "solved", "generations", "env_steps", "seconds", "eval_return_mean", "best_return")
    return asked | {key: summary[key] for key in keys} | kept


def archive(folder: RunFolder) -> list[list[int]]:
    """Return every n-th behavior of a run's centers, at most 100; empty without novelty search."""
    tensors, _ = read(max(folder.path.glob("checkpoints/*.safetensors")))
    found = tensors.get("novelty.archive", np.zeros((0, 2)))
    return found[:: max(1, len(found) // 100)].round(1).tolist()


def table() -> str:
    """Return, by task and method, the solved runs, their medians, and the returns of the others."""
    rows = [
        ["task", "search", "centers", "solved", "median seconds", "median env steps", "best of the others"]
    ]
    rows.append(["---"] * len(rows[0]))
    lines = results()
    tasks, kinds = list(dict.fromkeys(line["task"] for line in lines)), list(map(kind, METHODS))
    keys = {tuple(line[part] for part in GROUP) for line in lines}
    for key in sorted(keys, key=lambda key: (tasks.index(key[0]), kinds.index(kind(key[1])), *key[1:])):
        found = [line for line in lines if tuple(line[part] for part in GROUP) == key]
        task, method, centers = key
        solved = [line for line in found if line["solved"]]
        medians = [
            f"{np.median([line[key] for line in solved]):,.0f}" for key in ("seconds", "env_steps") if solved
        ]
        others = [line["best_return"] for line in found if not line["solved"]]
        told = f"{min(others):.1f} to {max(others):.1f}" if others else ""
        counted = [str(centers), f"{len(solved)} of {len(found)}"]
        rows.append([task, name(method), *counted, *(medians or ["", ""]), told])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def results() -> list[dict[str, Any]]:
    """Return the rows of all runs."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def kind(method: str) -> str:
    """Return the method without its options."""
    return method.partition(":")[0]


def name(method: str) -> str:
    """Return a readable name of the method with its options."""
    options = method.partition(":")[2]
    return "evolution strategy" if method == "none" else f"{kind(method).upper()}-ES {options}".strip()


def picture() -> None:
    """Draw the maze and the trap."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(METHODS), figsize=(3 * len(METHODS), 3.3), layout="constrained")
    lines = [line for line in results() if line["task"] == "maze" and line["seed"] > 20]
    for axes, found in zip(panels, by_kind(lines), strict=True):
        for x, y, to_x, to_y in maze.WALLS:
            axes.plot([x, to_x], [y, to_y], color="0.25")
        draw_ends(axes, found)
        axes.scatter(*maze.GOAL, marker="*", s=120, color="tab:green")
    figure.savefig(IMAGES / "maze.png", dpi=110)
    size = (3 * len(METHODS), 5.6)
    figure, panels = plt.subplots(2, len(METHODS), figsize=size, sharey="row", layout="constrained")
    lines = [line for line in results() if line["task"] == "trap"]
    for (above, below), found in zip(panels.T, by_kind(lines), strict=True):
        draw_trap(above, below, found)
    figure.savefig(IMAGES / "trap.png", dpi=110)


def by_kind(lines: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return rows of the evolution strategy, NS-ES, NSR-ES and NSRA-ES."""
    return [[line for line in lines if kind(line["method"]) == kind(method)] for method in METHODS]


def draw_ends(axes: Any, found: list[dict[str, Any]]) -> None:
    """Draw end points of the centers over time, from dark to light, and each run's last one."""
    centers = np.array([end for line in found for end in line["archive"]]).reshape(-1, 2)
    order = np.concatenate([np.linspace(0, 1, len(line["archive"])) for line in found])
    axes.scatter(*centers.T, s=4, c=order, cmap="viridis")
    axes.scatter(*np.array([line["end"] for line in found]).T, marker="x", color="tab:red", zorder=3)
    axes.set(title=name(kind(found[0]["method"])), xticks=[], yticks=[], aspect="equal")


def draw_trap(above: Any, below: Any, found: list[dict[str, Any]]) -> None:
    """Draw the U from above, x to the right, with the centers' end points, and their returns by steps."""
    x, y = [trap.OPENING, trap.BACK, trap.BACK, trap.OPENING], np.array([1, 1, -1, -1]) * trap.HALF_WIDTH
    above.plot(x, y, color="0.25", linewidth=3)
    draw_ends(above, found)
    above.axvline(trap.BEYOND, color="tab:green", linestyle=":")
    above.set(xlim=(-8, 8), ylim=(-8, 8))
    for line in found:
        steps, means = np.array(line["curve"]).T
        below.plot(
            steps / 1e6, means, linewidth=1, label=f"{line['seed']} {line['method'].partition(':')[2]}"
        )
    below.axhline(trap.BEYOND, color="tab:green", linestyle=":")
    below.set(xlabel="million env steps", ylabel="return, meters ahead")
    below.label_outer()
    below.legend(title="seed", fontsize=7, title_fontsize=7)


def cost() -> str:
    """Print the time of the archive in a generation, and of the generation."""
    drawn = np.random.default_rng(1)
    search = Novelty(NoveltyOptions("nsr:k=10"))
    known = drawn.normal(size=(10_000, 2)).astype(np.float32)
    search.archive, search.origins = Archive(known), np.zeros((len(known), 2), np.int64)
    generations, began = 256, time.perf_counter()
    for generation in range(generations):
        behaviors = drawn.normal(size=(129, 2)).astype(np.float32)
        center = Center(0.0, behaviors[-1], generation + 1, 0)
        search.shaped(drawn.normal(size=128), behaviors[:-1], center)
        search.learn(center)
    archive = (time.perf_counter() - began) / generations
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"population": 128, "generations": 40, "target_return": None, "workers": 2}
        options |= {"run_dir": f"{folder}/run", "verbose": False}
        run = escalade.train("CartPole-v1", **options)
        seconds = np.diff(read_progress(run.folder.progress)["seconds"])
    whole = float(np.median(seconds))
    return f"{1000 * archive:.2f} ms of {1000 * whole:.1f} ms: {100 * archive / whole:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table", "picture", "cost"))
    parser.add_argument("task", nargs="?", choices=TASKS)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--env-steps", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--centers", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.what in ("table", "cost"):
        print(table() if chosen.what == "table" else cost())
        return
    if chosen.what == "picture":
        picture()
        return
    limits = {key: getattr(chosen, key) for key in ("seconds", "env_steps", "workers", "centers")}
    for seed in chosen.seeds:
        for method in chosen.methods:
            line = json.dumps(run(chosen.task, method, seed, **limits))
            print(line, flush=True)
            with RESULTS.open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
