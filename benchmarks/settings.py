"""Settings tried on a task: how many seeds solve it, and in how many environment steps.

    python benchmarks/settings.py Pendulum-v1 target_return=-200 strategy=ars population=32 --seeds 1 2 3

Options are those of a config file, as ``name=value``. Without ``preset=auto`` nothing but them is set. Each
seed runs in this process (the same bits as with workers), and adds one JSON line to ``--output``: what was
asked for, and what came out. Steps and seeds are what counts;
the seconds depend on what else the machine did.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import escalade
from escalade.config.conversion import convert

OUTPUT = Path(__file__).parent / "results" / "settings.jsonl"
KEPT = ("env_steps", "eval_steps", "generations", "seconds", "eval_return_mean", "eval_return_std")
KEPT += ("best_return", "solved", "stop_reason", "backend")


def option(text: str) -> tuple[str, Any]:
    """``name=value`` as a flag of that name would read it."""
    name, _, value = text.partition("=")
    return name, value if name == "preset" else convert(name, value, text=True)


def run(env: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """One run from its start to its end; its line."""
    given = {"preset": None} | options | {"seed": seed, "workers": 0}
    with tempfile.TemporaryDirectory() as folder:
        summary = escalade.train(env, **given, run_dir=f"{folder}/run", verbose=False).summary
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"env": env, "day": day, "options": options, "seed": seed} | {name: summary[name] for name in KEPT}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("env")
    parser.add_argument("options", nargs="*", type=option, metavar="name=value")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_intermixed_args()
    for seed in arguments.seeds:
        found = run(arguments.env, dict(arguments.options), seed)
        if found["stop_reason"] == "interrupted":
            break
        line = json.dumps(found)
        with arguments.output.open("a", encoding="utf-8") as file:
            print(line, file=file)
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
