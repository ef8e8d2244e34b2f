"""Returns of untuned runs after a short time, for several candidate defaults.

    taskset -c 0 python benchmarks/default_returns.py [TASK ...] [--candidates NAME ...] [--seeds 1 2]
    taskset -c 0 python benchmarks/default_returns.py --of longer [...]
    taskset -c 0 python benchmarks/default_returns.py --of clip [...]

The tasks are EnvPool's and Gymnasium's. They exclude those of peers/unseen.toml, which test the choice. Each
run takes this one process for 30 seconds; in the sets ``longer`` and ``clip``, for 150. Adds a line to the
set's file, results/default_returns.jsonl, default_returns_longer.jsonl or default_returns_clip.jsonl, for
each candidate, task and seed that is not there yet; tables.py makes the tables.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import defaults
import escalade
import presets
from escalade.support.own_process import claim

RESULTS = Path(__file__).parent / "results"
EPISODES, CHANCE = 30, 12345  # of the final evaluation, and its seed
TASKS = (
    "AcrobotSwingup-v1",
    "SwimmerSwimmer6-v1",
    "HandReachDense-v3",
    "MetaWorld/DoorOpen-v3",
    "MetaWorld/PlateSlide-v3",
    "Parking-v0",
    "Reacher-v5",
    "Pusher-v5",
    "Hopper-v5",
    "Pendulum-v1",
)
_ALL, _HALF = ({"strategy": "ars", "strategy_options": {"top_directions": kept}} for kept in (32, 16))
_LINEAR, _NETWORK = {"policy": "linear"}, {"policy": "mlp", "hidden": [16]}
_OPENAI = {"strategy": "openai-es", "lr": 0.05}
CANDIDATES: dict[str, dict[str, Any]] = {
    "16 hidden units": _ALL | _NETWORK,
    "16 hidden units, half the step": _ALL | _NETWORK | {"lr": 0.05},
    "linear": _ALL | _LINEAR,
    "16 hidden units, best half": _HALF | _NETWORK,
    "linear, best half": _HALF | _LINEAR,
    "16 hidden units, OpenAI-ES": _OPENAI | _NETWORK,
    "linear, OpenAI-ES": _OPENAI | _LINEAR,
    "16 hidden units, PGPE": {"strategy": "pgpe"} | _NETWORK,
    "linear, PGPE": {"strategy": "pgpe"} | _LINEAR,
    "linear, CMA-ES": {"strategy": "cma-es", "init": "zeros"} | _LINEAR,
    "linear, best half, half the noise and step": _HALF | _LINEAR | {"sigma": 0.05, "lr": 0.05},
    "linear, best half, population 32": {
        "strategy": "ars",
        "strategy_options": {"top_directions": 8},
        "population": 32,
    }
    | _LINEAR,
    "quadratic, best half": _HALF | {"policy": "quadratic", "init": "zeros"},
}
"""Unless stated otherwise, all have a population of 64, and sigma and lr of 0.1."""
LONGER: dict[str, dict[str, Any]] = {
    "as it is": {},
    "PGPE, 16 to 64": {"strategy": "pgpe", "population": "linear:16:64:64"},
    "ARS, 64 and a step that shrinks": {"lr": "exponential:0.1:0.996:0.01"},
}
CLIP: dict[str, dict[str, Any]] = {
    "clipped at 5": {},
    "clipped at 10": {"observation_clip": 10.0},
    "not clipped": {"observation_clip": "none"},
}
"""All else as it is without a preset."""
Line = dict[str, Any]


@dataclass(frozen=True)
class Set:
    """Candidates that are compared with each other, and the file of their runs."""

    candidates: dict[str, dict[str, Any]]
    seconds: float
    file: str

    @property
    def results(self) -> Path:
        """The file of their runs."""
        return RESULTS / self.file


SETS = {
    "short": Set(CANDIDATES, 30.0, "default_returns.jsonl"),
    "longer": Set(LONGER, 150.0, "default_returns_longer.jsonl"),
    "clip": Set(CLIP, 150.0, "default_returns_clip.jsonl"),
}


def read(of: str) -> list[Line]:
    """Return all runs of a set's present candidates."""
    lines = presets.lines_of(SETS[of].results)
    return [line for line in lines if SETS[of].candidates.get(line["candidate"]) == line["options"]]


def reached(options: dict[str, Any], task: str, seed: int, seconds: float) -> Line:
    """Run once, and return the mean of fresh episodes of the last center."""
    given = options | {"preset": None, "seed": seed, "seconds": seconds, "workers": 0, "verbose": False}
    with tempfile.TemporaryDirectory() as folder:
        found = escalade.train(task, run_dir=f"{folder}/run", **given)
        score = escalade.evaluate(found, episodes=EPISODES, seed=CHANCE, workers=0)
    steps = {name: found.summary[name] for name in ("env_steps", "generations", "stop_reason")}
    return steps | {"mean": score.mean}


def run(candidate: str, task: str, seed: int, of: str) -> Line:
    """Run a candidate once and return the result line."""
    options, seconds = SETS[of].candidates[candidate], SETS[of].seconds
    what = {"candidate": candidate, "options": options, "task": task, "seed": seed, "limit": seconds}
    return what | reached(options, task, seed, seconds)


def table(lines: list[Line]) -> str:
    """Return a row for each candidate: its mean return on each task, and the mean of its scores.

    A score is 0 with the worst run of any candidate on the task, and 1 with the best.
    """
    found: dict[tuple[str, str], list[float]] = {}
    every: dict[str, list[float]] = {}
    for line in lines:
        found.setdefault((line["candidate"], line["task"]), []).append(line["mean"])
        every.setdefault(line["task"], []).append(line["mean"])
    bounds = {task: (min(means), max(means)) for task, means in every.items()}
    rows = []
    for name in dict.fromkeys(name for of in SETS.values() for name in of.candidates):
        if not any(name == candidate for candidate, _ in found):
            continue
        own = {task: statistics.mean(found[name, task]) for task in TASKS if (name, task) in found}
        scores = [(own[task] - low) / (high - low) for task, (low, high) in bounds.items() if task in own]
        score = f"{statistics.mean(scores):.2f}" if len(own) == len(TASKS) else "-"
        runs = sum(len(found[name, task]) for task in own)
        cells = [f"{own[task]:.4g}" if task in own else "-" for task in TASKS]
        rows.append([name, str(runs), *cells, score])
    return presets.markdown(["candidate", "runs", *TASKS, "score"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--of", choices=SETS, default="short")
    parser.add_argument("--candidates", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    given = parser.parse_args()
    candidates = given.candidates or SETS[given.of].candidates
    claim()  # of EnvPool's families, only the one that is needed is imported
    each = itertools.product(given.seeds, given.tasks, candidates)
    wanted = ((candidate, task, seed) for seed, task, candidate in each)
    defaults.measure(wanted, SETS[given.of].results, partial(read, given.of), partial(run, of=given.of))


if __name__ == "__main__":
    main()
