"""Every preset with several seeds, on both backends: from process start to ``solved`` in summary.json.

    python benchmarks/presets.py [ENV ...] [--backends auto gymnasium] [--seeds 0 1 2 ...] [--target 4800]

Starts the real command with two workers, and adds a line to results/presets.jsonl for each run. Existing runs
with the same settings are not repeated. tables.py makes the tables.
Seeds are 0 to 9, or 1 to 3 if ten would take hours. ``--target`` replaces the preset's target.
With ``--busy``, seconds are omitted, because other work on the machine makes them meaningless.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from escalade.config import presets

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "presets.jsonl"
FOLDER = Path(presets.__file__).parent / "tuned"
LONG = ("BipedalWalker-v3", "Ant-v5", "Humanoid-v5")
SECONDS = {
    "Hopper-v5": 300.0,
    "BipedalWalker-v3": 600.0,
    "Walker2d-v5": 1000.0,
    "Ant-v5": 2400.0,
    "Humanoid-v5": 7200.0,
}
"""Time limits of training; 120 for all others."""
Line = dict[str, Any]
Key = tuple[str, float, str]
"""Preset, target and backend: what a row of the table is about."""


def seeds_of(env: str) -> tuple[int, ...]:
    """Return the seeds for a preset: three if ten would take hours."""
    return (1, 2, 3) if env in LONG else tuple(range(10))


def limit_of(env: str) -> float:
    """Return the time limit of training in seconds."""
    return SECONDS.get(env, 120.0)


def target_of(env: str) -> float:
    """Return the preset's own target."""
    return float(presets.read(env).options["target_return"])


def solve(env: str, target: float, backend: str, seed: int, seconds: float) -> Line:
    """Run once. Return its summary, and the seconds from process start to summary.json."""
    options = _options(env)
    words = [options["env"], "--preset", env, "--seed", seed, "--workers", 2, "--backend", backend]
    spent, found = timed(*words, "--target-return", target, "--seconds", seconds)
    kept = ("solved", "env_steps", "eval_steps", "eval_return_mean")
    line = {"env": env, "target": target, "asked": backend, "seed": seed, "seconds": round(spent, 2)}
    return line | {key: found[key] for key in kept} | {"limit": seconds, "date": _today(), "options": options}


def timed(*words: object) -> tuple[float, dict[str, Any]]:
    """Run ``escalade train`` with these words. Return the seconds to its summary, and the summary."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "escalade", "train", *map(str, words), "--run-dir", f"{folder}/run"]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        summary = Path(folder) / "run" / "summary.json"
        while process.poll() is None and not summary.exists():
            time.sleep(0.01)
        spent = time.monotonic() - began
        process.wait()
        return spent, json.loads(summary.read_text())


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def read() -> list[Line]:
    """Return the lines of all runs with the presets' present settings."""
    # Runs of before 2026-11-27 have no head: the best action was the only choice.
    return [
        line
        for line in lines_of(RESULTS)
        if {"head": "plain"} | line["options"] == _options(line["env"], "plain")
    ]


def lines_of(file: Path) -> list[Line]:
    """Return the runs in a results file, or an empty list if the file does not exist."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _options(env: str, head: str | None = None) -> dict[str, Any]:
    """Return the preset's options as in JSON, with the strategy's options at the top level.

    ``head`` is used if the preset does not set one.
    """
    options: dict[str, Any] = json.loads(json.dumps(presets.read(env).options))
    options = options if head is None else {"head": head} | options
    return options | options.pop("strategy_options", {})


def key_of(line: Line) -> Key:
    """Return the key of a run's table row."""
    return line["env"], line["target"], line["asked"]


def measure(key: Key, seeds: list[int], seconds: float, busy: bool) -> None:
    """Run all missing measurements."""
    done = {line["seed"] for line in read() if key_of(line) == key}
    for seed in seeds:
        if seed in done:
            continue
        line = solve(*key, seed, seconds)
        line = line | {"seconds": None} if busy else line
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print({key: value for key, value in line.items() if key != "options"}, flush=True)


def result_of(lines: list[Line]) -> dict[str, Any]:
    """Return medians and worst values over the solved runs."""
    solved = [line for line in lines if line["solved"]]
    result: dict[str, Any] = {"seeds": len(lines), "solved": len(solved)}
    if not solved:
        return result
    timed = [line["seconds"] for line in solved if line["seconds"] is not None]
    if len(timed) == len(solved):
        result |= {"seconds": round(statistics.median(timed), 1), "worst_seconds": round(max(timed), 1)}
    steps = [line["env_steps"] for line in solved]
    return result | {
        "env_steps": int(statistics.median(steps)),
        "worst_steps": max(steps),
        "all_steps": int(statistics.median(line["env_steps"] + line["eval_steps"] for line in solved)),
        "return_mean": round(statistics.median(line["eval_return_mean"] for line in solved), 1),
        "date": max(line["date"] for line in lines),
    }


def groups() -> dict[Key, list[Line]]:
    """Return the runs of each preset, target and backend, by seed."""
    found: dict[Key, list[Line]] = {}
    for line in sorted(read(), key=lambda line: (*key_of(line), line["seed"])):
        found.setdefault(key_of(line), []).append(line)
    return found


TITLES = {
    "env": "preset",
    "target": "target",
    "asked": "backend",
    "count": "solved",
    "seconds": "median s",
    "worst_seconds": "worst s",
    "env_steps": "training steps, median",
    "worst_steps": "worst",
    "all_steps": "median with evaluations",
    "failed": "seeds that did not",
}


def row(key: Key, lines: list[Line]) -> dict[str, str]:
    """Return the table row of a preset, target and backend."""
    env, target, backend = key
    result = result_of(lines)
    words = {key: f"{value:,}" for key, value in result.items() if isinstance(value, int | float)}
    failed = [str(line["seed"]) for line in lines if not line["solved"]]
    return words | {
        "env": env,
        "target": f"{target:g}",
        "asked": backend,
        "count": f"{result['solved']} of {result['seeds']}",
        "failed": ", ".join(failed) or "-",
    }


def table(backends: tuple[str, ...], left_out: tuple[str, ...] = ()) -> str:
    """Return a Markdown table of the presets on these backends."""
    columns = [key for key in TITLES if key not in left_out]
    rows = [row(key, lines) for key, lines in groups().items() if key[2] in backends]
    return markdown(
        [TITLES[key] for key in columns], [[one.get(key, "-") for key in columns] for one in rows]
    )


def results() -> dict[str, dict[str, Any]]:
    """Return each preset's ``[result]``: runs to its target on the backend of ``auto``."""
    own = {key[0]: lines for key, lines in groups().items() if key == (key[0], target_of(key[0]), "auto")}
    return {env: result_of(lines) for env, lines in own.items()}


def write_result(env: str, result: dict[str, Any]) -> None:
    """Write a result into a preset's file."""
    path = FOLDER / f"{env}.toml"
    kept = re.split(r"^\[result\]\n", path.read_text(), flags=re.MULTILINE)[0].rstrip() + "\n"
    lines = [f"{key} = {json.dumps(value)}" for key, value in result.items()]
    path.write_text(kept + "[result]\n" + "\n".join(lines) + "\n")


def _measured() -> list[str]:
    """Return the presets with results: those that have one, or are named."""
    return [name for name in presets.names() if presets.read(name).result is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("environments", nargs="*", default=_measured())
    parser.add_argument("--backends", nargs="*", default=["auto", "gymnasium"])
    parser.add_argument("--seeds", type=int, nargs="*", help="0 to 9, or 1 to 3 where ten would take hours")
    parser.add_argument("--target", type=float, help="default: the preset's own")
    parser.add_argument("--seconds", type=float, help="give up after this much training: 120 to 7200")
    parser.add_argument("--busy", action="store_true", help="leave seconds out")
    arguments = parser.parse_args()
    for env in arguments.environments:
        target = target_of(env) if arguments.target is None else arguments.target
        seeds = arguments.seeds or seeds_of(env)
        seconds = arguments.seconds or limit_of(env)
        for backend in arguments.backends:
            measure((env, target, backend), seeds, seconds, arguments.busy)


if __name__ == "__main__":
    main()
