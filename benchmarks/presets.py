"""Every preset, seeds 1 to 5, from process start to ``solved`` in summary.json.

    python benchmarks/presets.py [ENV ...] [--seeds 1 2 3 4 5] [--write]

Runs the real command, as a user would, with two workers. ``--write`` puts the medians into the
presets' ``[result]`` tables. Prints a table in Markdown.
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
from pathlib import Path
from typing import Any

from escalade.config import presets

FOLDER = Path(presets.__file__).parent / "tuned"


def solve(env: str, seed: int, seconds: float) -> tuple[float | None, dict[str, Any]]:
    """Seconds from process start until summary.json says solved (None if it never does), and the summary."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "escalade", "train", str(presets.read(env).options["env"])]
        words += ["--preset", env, "--seed", str(seed), "--workers", "2"]
        began = time.monotonic()
        process = subprocess.Popen(
            [*words, "--seconds", str(seconds), "--run-dir", f"{folder}/run"], stdout=subprocess.DEVNULL
        )
        summary = Path(folder) / "run" / "summary.json"
        while process.poll() is None and not summary.exists():
            time.sleep(0.01)
        spent = time.monotonic() - began
        process.wait()
        found = json.loads(summary.read_text())
    return (spent if found["solved"] else None), found


def write_result(env: str, result: dict[str, Any]) -> None:
    path = FOLDER / f"{env}.toml"
    kept = re.split(r"^\[result\]\n", path.read_text(), flags=re.MULTILINE)[0].rstrip() + "\n"
    lines = [f"{key} = {json.dumps(value)}" for key, value in result.items()]
    path.write_text(kept + "[result]\n" + "\n".join(lines) + "\n")


def _measured() -> list[str]:
    return [name for name in presets.names() if presets.read(name).result is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*", default=_measured())
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    parser.add_argument("--seconds", type=float, default=180.0, help="give up after this much training")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    columns = ["environment", "target", "solved", "seconds, by seed", "median s", "training steps, median"]
    columns += ["with evaluations, median", "return, median"]
    print("|", " | ".join(columns), "|\n|", " | ".join("---" for _ in columns), "|")
    for env in arguments.environments:
        runs = [solve(env, seed, arguments.seconds) for seed in arguments.seeds]
        solved = [(spent, summary) for spent, summary in runs if spent is not None]
        times = ", ".join("-" if spent is None else f"{spent:.1f}" for spent, _ in runs)
        target = presets.read(env).options["target_return"]
        if not solved:
            print(f"| {env} | {target:g} | 0 of {len(runs)} | {times} | - | - | - | - |", flush=True)
            continue
        result = {
            "seeds": len(runs),
            "solved": len(solved),
            "seconds": round(statistics.median(spent for spent, _ in solved), 1),
            "env_steps": int(statistics.median(summary["env_steps"] for _, summary in solved)),
            "all_steps": int(statistics.median(s["env_steps"] + s["eval_steps"] for _, s in solved)),
            "return_mean": round(statistics.median(s["eval_return_mean"] for _, s in solved), 1),
        }
        print(
            f"| {env} | {target:g} | {result['solved']} of {result['seeds']} | {times} | {result['seconds']} "
            f"| {result['env_steps']:,} | {result['all_steps']:,} | {result['return_mean']} |",
            flush=True,
        )
        if arguments.write:
            write_result(env, result)


if __name__ == "__main__":
    main()
