"""Digests of short runs, which a change without numerical effect must not alter.

    python benchmarks/digests.py --write benchmarks/digests.json     # before the change
    python benchmarks/digests.py --check benchmarks/digests.json     # after it

The settings of benchmarks/determinism.py on three environments and both backends, then every strategy,
every head and action map, and all other separate code paths. Digests are valid for one machine and one
version of numpy and torch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import escalade
from escalade.strategies.registry import STRATEGIES

BASE = {"preset": None, "population": 32, "sigma": 0.1, "seed": 7, "workers": 0, "verbose": False}
BASE |= {"strategy": "openai-es", "hidden": [64, 64], "head": "plain"}
LR = {"lr": 0.05}
SMALL = {"population": 16, "hidden": [8], "seed": 3, "eval_every": 2, "eval_episodes": 3, "generations": 6}
SGD = "openai-es:optimizer=sgd"
CHEETAH = {"env": "HalfCheetah-v5", "max_episode_steps": 25}


def runs() -> dict[str, dict[str, Any]]:
    """Return the options of every run, by name."""
    found: dict[str, dict[str, Any]] = {}
    for env, cap in (("CartPole-v1", None), ("LunarLander-v3", None), ("HalfCheetah-v5", 100)):
        for backend in ("gymnasium", "envpool"):
            options = {"env": env, "backend": backend, "generations": 10, "max_episode_steps": cap}
            found[f"{env} {backend}"] = BASE | LR | options
    for strategy in STRATEGIES:
        found[f"strategy {strategy}"] = BASE | SMALL | CHEETAH | {"strategy": strategy}
    for name in ("plain", "uniform:5", "custom:-1,0,1"):
        found[f"head {name}"] = BASE | SMALL | CHEETAH | {"head": name}
    for name in ("clip", "rescale", "tanh"):
        found[f"action map {name}"] = BASE | SMALL | CHEETAH | {"action_map": name}
    others: dict[str, dict[str, Any]] = {
        "action noise": CHEETAH | {"action_noise": 0.3},
        "no normalizer": CHEETAH | {"normalize_observations": False, "episodes_per_member": 2},
        "growing": {"env": "CartPole-v1", "min_episodes": 40},
        "cut-off": {"env": "CartPole-v1", "cutoff": "adaptive:20,0.5,1.5"},
        "sgd": CHEETAH | {"strategy": f"{SGD},weight_decay=0.01", "sigma": "exponential:0.1:0.9"},
        "clipup": CHEETAH | {"strategy": "openai-es:optimizer=clipup,shaping=nes"},
        "linear": {"env": "CartPole-v1", "policy": "linear", "init": "zeros", "hidden": []},
        "quadratic": CHEETAH | {"policy": "quadratic", "strategy": "cma-es", "hidden": []},
        "low rank": CHEETAH | {"perturbation": "low-rank:1", "hidden": [64, 32]},
        "selu": {"env": "Acrobot-v1", "activation": "selu", "max_episode_steps": 60},
    }
    return found | {name: BASE | SMALL | options for name, options in others.items()}


def trained(options: dict[str, Any], folder: Path) -> str:
    options = dict(options)
    run = escalade.train(options.pop("env"), run_dir=str(folder), **options)
    return str(run.summary["params_sha256"])


def evolved(strategy: str) -> str:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    inputs = torch.linspace(-1, 1, 15).reshape(5, 3)

    def fitness(module: torch.nn.Module) -> torch.Tensor:
        return -((module(inputs)[:, 0] - inputs.sum(dim=1)) ** 2).mean() + 0.01 * torch.randn(())

    result = escalade.evolve(module, fitness, strategy=strategy, population=20, generations=8, workers=0)
    return hashlib.sha256(np.concatenate([result.center, result.best]).tobytes()).hexdigest()


def digests() -> dict[str, str]:
    """Return the digest of every run, by name."""
    found = {}
    with tempfile.TemporaryDirectory() as base:
        for number, (name, options) in enumerate(runs().items()):
            found[name] = trained(options, Path(base) / str(number))
            print(f"{name}: {found[name][:16]}", flush=True)
    return found | {f"evolve {name}": evolved(name) for name in STRATEGIES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--check", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    found = digests()
    if arguments.write:
        arguments.write.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.check:
        before = json.loads(arguments.check.read_text())
        moved = [name for name in before if before[name] != found.get(name)]
        print(f"{len(before) - len(moved)} of {len(before)} the same" + "".join(f"\n{n}" for n in moved))
        raise SystemExit(1 if moved else 0)


if __name__ == "__main__":
    main()
