"""Atari with one setting for all games, an hour on one core, compared with the paper's 720 cores.

    python benchmarks/atari.py run [--games Pong ...] [--seeds 1 2] [--core 0]    # resumable
    python benchmarks/atari.py chance                                             # random actions

A run is the plain command, `escalade train ALE/GAME-v5 --workers 0 --seed N`, with the same setting for every
game. It is interrupted when its process has used an hour of processor time, start included. On an idle core
this takes an hour, and other work does not affect it. Then the latest center plays 100 fresh episodes, and so
does the one with the best evaluation: frame skip 4, up to 30 no-ops, no sticky actions, whole episodes of at
most 4,500 steps (18,000 frames). Rows are stored in results/atari.jsonl, curves in results/atari; tables.py
writes both into atari.md. The paper's column is "ES FF, 1 hour" of Salimans et al. 2017.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

import escalade
import presets
from escalade.envs import resolve
from escalade.envs.pixels.frames import Frames
from peers.machine import processor

HERE = Path(__file__).parent
ROWS = HERE / "results" / "atari.jsonl"
CURVES = HERE / "results" / "atari"
SECONDS = 3600.0
"""Processor time of a run."""
EPISODES = 100
SEEDS = (1, 2)
PAPER = {
    "Pong": 21.0,
    "Breakout": 9.5,
    "Seaquest": 1390.0,
    "BeamRider": 744.0,
    "Freeway": 31.0,
    "SpaceInvaders": 678.5,
    "Qbert": 147.5,
    "Enduro": 95.0,
    "Boxing": 49.8,
    "Kangaroo": 11200.0,
    "Frostbite": 370.0,
    "RoadRunner": 16590.0,
}
CHOSEN_ON = ("Pong", "Breakout", "Seaquest", "BeamRider")
"""The games that the setting was chosen on. Freeway was measured too, before the setting's last change."""
CHECKPOINTS = {"latest": "escalade", "best": "escalade, best"}
"""Each checkpoint's name in the rows. The best one is that of the highest evaluation, of a single episode."""
Row = dict[str, Any]


def add(row: Row) -> None:
    """Store a row."""
    with ROWS.open("a") as file:
        file.write(json.dumps(row | {"date": datetime.now(UTC).date().isoformat()}) + "\n")
    print(row)


def processor_seconds(process: int) -> float:
    """Processor time of a running process, and of its children that have ended."""
    numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
    return sum(map(int, numbers)) / os.sysconf("SC_CLK_TCK")


def train(game: str, seed: int, folder: Path, core: int | None) -> None:
    """Train for :data:`SECONDS` of processor time, those of earlier attempts included."""
    used = folder.with_suffix(".seconds")
    before = float(used.read_text()) if used.exists() else 0.0
    if before >= SECONDS:
        return
    own = [f"ALE/{game}-v5", "--workers", "0", "--seed", str(seed), "--run-dir", str(folder)]
    command = ["resume", str(folder)] if folder.exists() else ["train", *own]
    pinned = [] if core is None else ["taskset", "-c", str(core)]
    with folder.with_suffix(".log").open("a") as log:
        process = subprocess.Popen(
            [*pinned, sys.executable, "-m", "escalade", *command], stdout=log, stderr=log
        )
        spent = 0.0
        while process.poll() is None:
            spent = processor_seconds(process.pid)
            used.write_text(str(before + spent))
            if before + spent >= SECONDS:
                process.send_signal(signal.SIGINT)
                process.wait()
            time.sleep(0.5)
    if before + spent < SECONDS:
        raise SystemExit(f"{folder} ended after {before + spent:.0f} s of the processor: see {log.name}")


def run(game: str, seed: int, folder: Path, core: int | None, missing: list[str]) -> None:
    """One run of the table, and the rows of its missing checkpoints."""
    train(game, seed, folder, core)
    CURVES.mkdir(parents=True, exist_ok=True)
    (CURVES / f"{game}-{seed}.csv").write_text((folder / "progress.csv").read_text())
    for checkpoint in missing:
        evaluate(game, seed, folder, checkpoint)


def evaluate(game: str, seed: int, folder: Path, checkpoint: str) -> None:
    """One row: fresh episodes of a run's checkpoint."""
    summary = json.loads((folder / "summary.json").read_text())
    found = escalade.evaluate(folder, episodes=EPISODES, workers=0, checkpoint=checkpoint)
    add(
        {
            "by": CHECKPOINTS[checkpoint],
            "game": game,
            "seed": seed,
            "minutes": SECONDS / 60,
            "env_steps": summary["env_steps"] + summary["eval_steps"],
            "mean": found.mean,
            "std": found.std,
            "min": float(found.returns.min()),
            "max": float(found.returns.max()),
            "processor": processor(),
        }
    )


def chance(game: str) -> None:
    """The returns of random actions, in episodes of the same kind as a policy's."""
    frames = Frames(frame_skip=4, noop_max=30, sticky_actions=0.0)
    env = resolve(f"ALE/{game}-v5", {"obs_type": "ram"}, max_episode_steps=4500, frames=frames).make()
    returns, draw = [], np.random.default_rng(0)
    for seed in range(EPISODES):
        env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, _ = env.step(int(draw.integers(env.action_space.n)))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    add({"by": "chance", "game": game, "mean": float(np.mean(returns)), "std": float(np.std(returns))})


def table() -> str:
    """Return every game's means beside those of chance, PPO and the paper."""

    kept = rows()

    def shown(by: str, game: str, seed: int | None = None) -> str:
        row = kept.get((by, game, seed))
        return f"{row['mean']:,.1f}" if row else "-"

    cells = []
    for game, paper in PAPER.items():
        mark = " (chosen on)" if game in CHOSEN_ON else ""
        ours = [shown(by, game, seed) for seed in SEEDS for by in CHECKPOINTS.values()]
        found = [shown("chance", game), shown("ppo", game, 1), *ours, f"{paper:,.1f}"]
        cells.append([game + mark, *found])
    header = ["game", "chance", "PPO, seed 1", "seed 1", "best", "seed 2", "best", "paper, 720 cores"]
    return presets.markdown(header, cells)


def curves() -> str:
    """Return the spread of every run's and PPO's episodes, and mean evaluations in each million of steps."""
    kept, cells = rows(), []
    for game, seed in product(PAPER, SEEDS):
        found = [kept[by, game, seed] for by in CHECKPOINTS.values() if (by, game, seed) in kept]
        if len(found) == len(CHECKPOINTS):
            ppo = kept.get(("ppo", game, seed))
            of_ppo = [spread(ppo), in_millions(ppo)] if ppo else ["-", "-"]
            parts = [*map(spread, found), in_millions(found[0]), *of_ppo, *millions(game, seed)]
            cells.append([game, str(seed), *parts])
    header = ["game", "seed", "latest", "best", "million steps", "PPO", "million steps"]
    longest = max(map(len, cells))
    header += [f"to {n}" for n in range(1, longest - len(header) + 1)]
    return presets.markdown(header, [row + [""] * (longest - len(row)) for row in cells])


def spread(row: Row) -> str:
    """Return the mean, standard deviation and range of a row's episodes."""
    return f"{row['mean']:,.1f} ± {row['std']:,.1f} ({row['min']:,.0f} to {row['max']:,.0f})"


def in_millions(row: Row) -> str:
    """Return a row's environment steps in millions."""
    return f"{row['env_steps'] / 1e6:.1f}"


def millions(game: str, seed: int) -> list[str]:
    """Return the mean evaluation in each million steps of a run's members."""
    with (CURVES / f"{game}-{seed}.csv").open() as file:
        lines = [(int(line["env_steps"]), float(line["eval_return_mean"])) for line in csv.DictReader(file)]
    parts = groupby(lines, key=lambda line: line[0] // 1_000_000)
    return [f"{np.mean([mean for _, mean in part]):,.1f}" for _, part in parts]


def rows() -> dict[tuple[str, str, int | None], Row]:
    """Return the stored rows by their program, game and seed."""
    return {(row["by"], row["game"], row.get("seed")): row for row in presets.lines_of(ROWS)}


def main() -> None:
    """Run the requested measurements that have no row yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "chance"))
    parser.add_argument("--games", nargs="*", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    parser.add_argument("--core", type=int, help="the core that runs stay on (default: any)")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "atari")
    asked = parser.parse_args()
    done = rows()
    for game in asked.games if asked.what == "chance" else ():
        if ("chance", game, None) not in done:
            chance(game)
    for seed in asked.seeds if asked.what == "run" else ():
        asked.runs.mkdir(parents=True, exist_ok=True)
        for game in asked.games:
            missing = [check for check, by in CHECKPOINTS.items() if (by, game, seed) not in done]
            if missing:
                folder = asked.runs / f"{game}-{seed}"
                run(game, seed, folder, asked.core, missing)


if __name__ == "__main__":
    main()
