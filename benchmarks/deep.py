"""Env steps to a target return with low-rank and full-rank noise, and curves of long runs.

    python benchmarks/deep.py ranks    # HalfCheetah-v5, 64-64 and 256-256, ranks 1 to 8 and full, three seeds
    python benchmarks/deep.py table    # the table of results/deep.jsonl

A run is appended to results/deep.jsonl when it ends, and is not repeated. Steps are training steps up to the
generation whose evaluation reached the target and was confirmed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import escalade

RESULTS = Path(__file__).parent / "results" / "deep.jsonl"
PERTURBATIONS = ("full", "low-rank:1", "low-rank:2", "low-rank:4", "low-rank:8")
ENV, TARGET = "HalfCheetah-v5", 3430.0
SETTING: dict[str, Any] = {"strategy": "ars", "sigma": 0.05, "lr": 0.05, "population": 64, "policy": "mlp"}
LIMITS: dict[str, Any] = {"env_steps": 10_000_000, "eval_every": 5, "eval_episodes": 10}
KEPT = (
    "env_steps",
    "generations",
    "eval_return_mean",
    "best_return",
    "stop_reason",
    "seconds",
    "params_sha256",
)


def results() -> list[dict[str, Any]]:
    """Return every run so far."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(hidden: list[int], perturbation: str, seed: int, workers: int) -> None:
    """Train and append the result, unless the run exists already."""
    asked = {"env": ENV, "hidden": hidden, "perturbation": perturbation, "seed": seed} | SETTING
    if any(asked.items() <= known.items() for known in results()):
        return
    options = asked | LIMITS | {"target_return": TARGET, "workers": workers, "preset": None, "verbose": False}
    found = escalade.train(options.pop("env"), **options)
    line = asked | {name: found.summary[name] for name in KEPT}
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(line, flush=True)


def table() -> str:
    """Return a table of steps to the target, in millions, for each seed, and their mean."""
    lines = ["| network | noise | seed 1 | seed 2 | seed 3 | mean |", "| --- | --- | --- | --- | --- | --- |"]
    for hidden in ([64, 64], [256, 256]):
        for perturbation in PERTURBATIONS:
            runs = [r for r in results() if (r["hidden"], r["perturbation"]) == (hidden, perturbation)]
            cells = [_steps(next((r for r in runs if r["seed"] == seed), None)) for seed in (1, 2, 3)]
            solved = [r["env_steps"] / 1e6 for r in runs if r["stop_reason"] == "solved"]
            mean = f"{sum(solved) / len(solved):.2f}" if len(solved) == 3 else f"{len(solved)} of {len(runs)}"
            lines.append(f"| {'-'.join(map(str, hidden))} | {perturbation} | {' | '.join(cells)} | {mean} |")
    return "\n".join(lines)


def _steps(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    if found["stop_reason"] != "solved":
        return f"not in {found['env_steps'] / 1e6:.1f} ({found['best_return']:.0f})"
    return f"{found['env_steps'] / 1e6:.2f}"


def main() -> None:
    if sys.argv[1:] == ["table"]:
        print(table())
        return
    for seed in (1, 2, 3):
        for hidden in ([64, 64], [256, 256]):
            for perturbation in PERTURBATIONS:
                run(hidden, perturbation, seed, workers=2)


if __name__ == "__main__":
    main()
