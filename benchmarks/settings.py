"""Settings tried on a task: how many seeds solve it, and in how many environment steps.

    python benchmarks/settings.py Pendulum-v1 target_return=-200 strategy=ars population=32 --seeds 1 2 3

Adds a JSON line with the settings and the result to results/settings.jsonl for each seed.
Options are those of a config file and of the strategy, as ``name=value``. No other option is set, unless
``preset=auto`` is one.
Each seed runs in this process, bit-identical to a run with any number of workers. Steps and seeds matter; the
seconds depend on other work on the machine. tables.py makes the table.
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
import presets
from escalade.config import presets as tuned
from escalade.config.conversion import convert
from escalade.config.options import OPTIONS
from escalade.config.strategy_text import layered, value_of

RESULTS = Path(__file__).parent / "results" / "settings.jsonl"
KEPT = ("env_steps", "eval_steps", "generations", "seconds", "eval_return_mean", "eval_return_std")
KEPT += ("best_return", "solved", "stop_reason", "backend")

Line = dict[str, Any]


def option(text: str) -> tuple[str, Any]:
    """Parse ``name=value`` as the flag of that name does."""
    name, _, value = text.partition("=")
    return name, convert(name, value) if name in OPTIONS else value_of(value)


def run(env: str, options: dict[str, Any], seed: int) -> Line:
    """Run once and return the result line."""
    values = {name: value for name, value in options.items() if name != "preset"}
    own = {name: values.pop(name) for name in [*values] if name not in OPTIONS}
    values["strategy_options"] = own
    options = layered(tuned.options(env, options.get("preset"), values), values)  # a preset may change
    options.pop("env", None)
    given = options | {"preset": None, "seed": seed, "workers": 0}
    with tempfile.TemporaryDirectory() as folder:
        summary = escalade.train(env, **given, run_dir=f"{folder}/run", verbose=False).summary
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    asked = options | options.pop("strategy_options")
    return {"env": env, "day": day, "options": asked, "seed": seed} | {name: summary[name] for name in KEPT}


def read() -> list[Line]:
    """Return all runs."""
    return presets.lines_of(RESULTS)


def table(lines: list[Line]) -> str:
    """Return a row per environment and settings, in the order of their first run."""
    grouped: dict[str, list[Line]] = {}
    for line in lines:
        settings = {name: value for name, value in line["options"].items() if name != "env_steps"}
        grouped.setdefault(json.dumps([line["env"], settings]), []).append(line)
    rows = []
    for key, runs in grouped.items():
        env, settings = json.loads(key)
        target = settings.pop("target_return", None)
        words = " ".join(f"{name}={_word(value)}" for name, value in settings.items())
        solved = sum(line["solved"] for line in runs)
        steps = ", ".join(
            f"{line['env_steps']:,}"
            if line["solved"]
            else f"- ({line['eval_return_mean']:.0f} after {line['env_steps']:,})"
            for line in runs
        )
        goal = "" if target is None else f" ({target:g})"
        rows.append([f"{env}{goal}", words, f"{solved} of {len(runs)}", steps])
    return presets.markdown(["environment", "settings", "solved", "training steps, by seed"], rows)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("env")
    parser.add_argument("options", nargs="*", type=option, metavar="name=value")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    arguments = parser.parse_intermixed_args()
    for seed in arguments.seeds:
        found = run(arguments.env, dict(arguments.options), seed)
        line = json.dumps(found)
        with RESULTS.open("a", encoding="utf-8") as file:
            print(line, file=file)
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
