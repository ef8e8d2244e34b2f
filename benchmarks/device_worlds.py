"""Overhead of training in batched worlds, forward passes on a device, and returns after a fixed time.

    python benchmarks/device_worlds.py                         # torch on the CPU, about three minutes
    python benchmarks/device_worlds.py --device cuda           # on a GPU, under four minutes
    python benchmarks/device_worlds.py --seconds 2 --size 64   # runs every section with small sizes

Prints one JSON object per line. Worlds whose package is not installed are skipped. `speed` lines have medians
of alternating rounds, in environment steps per second of running episodes. `forward` lines have microseconds
per step of 64-64 members, called as they are, replayed from a CUDA graph, and compiled. `curve` lines have
the returns of a run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import escalade
from escalade.config.options import Config
from escalade.perturbation.device import Counters, DeviceNoise
from escalade.policies.networks import layout_of
from escalade.policies.population.held_module import HeldModule
from escalade.policies.population.members import Members
from escalade.strategies import OpenAIES
from escalade.support.imports import missing
from escalade.wings.checking.bench import bench

SPEED = {
    "escalade.worlds:Pendulum": {"episodes_per_member": 8},
    "escalade.worlds:CartPole": {"head": "plain"},
}
"""Worlds whose training speed is measured: 64-64 networks of low rank on a device, 16 units on the CPU."""
CURVES = {
    ("torch", "escalade.worlds:CartPole"): {"population": 256, "target_return": 475.0},
    ("torch", "escalade.worlds:Pendulum"): {"population": 256, "target_return": -200.0},
    ("mujoco_playground", "playground:CheetahRun"): {"population": 4096},
    ("mjlab", "mjlab:Mjlab-Velocity-Flat-Unitree-G1"): {"population": 4096, "cutoff": 500},
}
"""Runs, and the package that each needs."""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=45.0, help="time limit of a run (default: 45)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="seeds of the runs (default: 1)")
    parser.add_argument("--size", type=int, default=4096, help="largest population (default: 4096)")
    options = parser.parse_args()
    large = (
        {"hidden": (64, 64), "perturbation": "low-rank:1"} if options.device != "cpu" else {"hidden": (16,)}
    )
    for env, own in SPEED.items():
        rows = options.size * int(own.get("episodes_per_member", 1))
        config = Config(env=env, device=options.device, population=options.size, num_envs=rows, **large | own)
        found = bench(config, seconds=min(4.0, options.seconds), rounds=4, report=lambda line: None)
        show(options, env=env, kind="speed", useful=found.useful, raw=found.raw, ratio=found.ratio)
    for rank in (0, 1):
        show(options, kind="forward", rank=rank, **forward(torch.device(options.device), rank, options.size))
    for (package, env), own in CURVES.items():
        if missing(package):
            continue
        for seed in options.seeds:
            curve(options, env, seed, own | {"population": min(own["population"], options.size)})


def forward(device: torch.device, rank: int, size: int) -> dict[str, float]:
    """Microseconds of a step of ``size`` members of an 8-64-64-2 MLP, by the way they are called."""
    module = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)).to(
        device
    )
    source = DeviceNoise(Counters(device), rank, layout_of(module).held_shapes)
    center = layout_of(module).to_vector(module)
    held = HeldModule(module, layout_of(module), source)
    held.begin(center)
    population = OpenAIES(center, size, sigma=0.1, perturbation=source).sample()
    members, seen = Members(held, population, range(size)), torch.randn(size, 1, 8, device=device)
    calls: dict[str, Callable[[], Any]] = {"eager": lambda: members(seen)}
    with torch.no_grad():
        members(seen)
        if device.type == "cuda":
            calls["graph"] = graph_of(lambda: members(seen))
            if rank == 0:
                calls["compiled"] = torch.compile(lambda: stacked(members.parameters, seen))
        return {name: 1e6 * seconds(call, device) for name, call in calls.items()}


def stacked(own: dict[str, Tensor], seen: Tensor) -> Tensor:
    """The forward pass of an MLP as one batched product per layer."""
    weights = [part for part in own.values() if part.ndim == 3]
    biases = [part for part in own.values() if part.ndim == 2]
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        seen = torch.baddbmm(bias[:, None], seen, weight.mT)
        seen = seen.tanh() if number < len(weights) - 1 else seen
    return seen


def graph_of(call: Callable[[], Any]) -> Callable[[], Any]:
    """Capture a call in a CUDA graph, and return its replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # as torch's notes on graphs recommend
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def seconds(call: Callable[[], Any], device: torch.device, calls: int = 50) -> float:
    """Median time of a call over five rounds."""
    found = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        found.append((time.perf_counter() - began) / calls)
    return statistics.median(found)


def curve(options: argparse.Namespace, env: str, seed: int, own: dict[str, Any]) -> None:
    """Train until the time limit or the target, and print the returns."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = escalade.train(
            env,
            device=options.device,
            seed=seed,
            seconds=options.seconds,
            run_dir=f"{folder}/run",
            verbose=False,
            **own,
        )
        facts = {name: run.summary[name] for name in ("stop_reason", "env_steps", "eval_return_mean")}
        returns = [round(float(one), 2) for one in run.history["return_mean"]]
    shown = returns[:: max(1, len(returns) // 20)]
    show(options, env=env, kind="curve", seed=seed, wall=time.perf_counter() - began, returns=shown, **facts)


def show(options: argparse.Namespace, **facts: Any) -> None:
    """Print one line of results."""
    device = options.device if options.device == "cpu" else torch.cuda.get_device_name()
    print(json.dumps({"device": device, "torch": torch.__version__, **facts}), flush=True)


if __name__ == "__main__":
    main()
