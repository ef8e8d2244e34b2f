"""How much of a batched world's speed training gets, and how soon worlds on a device are solved.

    python benchmarks/device_worlds.py                  # torch on the CPU, in a minute
    python benchmarks/device_worlds.py --device cuda    # where there is a GPU, in under four minutes

Writes one JSON object a line. Worlds whose package is not installed are left out. `speed` has medians of
rounds in turns, in environment steps a second of episodes that had not ended; `curve` the returns of a run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from typing import Any

import torch

import escalade
from escalade.config.options import Config
from escalade.support.imports import missing
from escalade.wings.checking.bench import bench

SPEED = {
    "escalade.worlds:Pendulum": {"population": 4096, "episodes_per_member": 8, "num_envs": 32768 + 16},
    "escalade.worlds:CartPole": {"population": 4096, "head": "plain"},
}
"""Worlds whose speed is measured, with 64-64 networks and noise of low rank on a device."""
CURVES = {
    ("torch", "escalade.worlds:CartPole"): {"population": 256, "target_return": 475.0},
    ("torch", "escalade.worlds:Pendulum"): {"population": 256, "target_return": -200.0},
    ("mujoco_playground", "playground:CheetahRun"): {"population": 4096},
    ("mjlab", "mjlab:Mjlab-Velocity-Flat-Unitree-G1"): {"population": 4096, "cutoff": 500},
}
"""Runs, with the package that each needs."""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=45.0, help="of a run (default: 45)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the runs (default: 1)")
    asked = parser.parse_args()
    large = {"hidden": (64, 64), "perturbation": "low-rank:1"} if asked.device != "cpu" else {"hidden": (16,)}
    for env, options in SPEED.items():
        config = Config(env=env, device=asked.device, **large | options)
        found = bench(config, seconds=4.0, rounds=4, report=lambda line: None)
        told(asked, env=env, kind="speed", useful=found.useful, raw=found.raw, ratio=found.ratio)
    for (package, env), options in CURVES.items():
        if missing(package):
            continue
        for seed in asked.seeds:
            curve(asked, env, seed, options)


def curve(asked: argparse.Namespace, env: str, seed: int, options: dict[str, Any]) -> None:
    """Train for so many seconds, or to the target, and print how it went."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = escalade.train(
            env,
            device=asked.device,
            seed=seed,
            seconds=asked.seconds,
            run_dir=f"{folder}/run",
            verbose=False,
            **options,
        )
        facts = {name: run.summary[name] for name in ("stop_reason", "env_steps", "eval_return_mean")}
        returns = [round(float(one), 2) for one in run.history["return_mean"]]
    shown = returns[:: max(1, len(returns) // 20)]
    told(asked, env=env, kind="curve", seed=seed, wall=time.perf_counter() - began, returns=shown, **facts)


def told(asked: argparse.Namespace, **facts: Any) -> None:
    """Print one line of results."""
    device = asked.device if asked.device == "cpu" else torch.cuda.get_device_name()
    print(json.dumps({"device": device, "torch": torch.__version__, **facts}), flush=True)


if __name__ == "__main__":
    main()
