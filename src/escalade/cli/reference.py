"""The commands that give figures to compare with: ``presets`` and ``bench``."""

from __future__ import annotations

import argparse
import json
from textwrap import shorten
from typing import Any

from escalade.api.opening import warm_up_for
from escalade.cli.arguments import add_argument, add_command, add_environment, add_options, whole
from escalade.cli.training import config_typed
from escalade.config.commands import flag
from escalade.config.conversion import convert, toml_text
from escalade.config.options import NOT_MEASURED, OPTIONS
from escalade.support.numbers import number
from escalade.support.output import printing, say

_NO_PART = ("env", "seconds", "run_dir", "snapshot_every", "recorder")  # of a measurement
_BENCH = [
    name
    for name, option in OPTIONS.items()
    if name not in (*NOT_MEASURED, *_NO_PART)
    and (name == "episodes_per_member" or option.metadata["group"] != "evaluation and limits")
]


def add_presets(commands: Any) -> None:
    """``escalade presets``."""
    parser = add_command(
        commands,
        "presets",
        "[PRESET]",
        _presets,
        examples=["", "Acrobot-v1", "openai/humanoid"],
    )
    parser.add_argument("preset", nargs="?", metavar="PRESET", help="show this one (default: list all)")


def add_bench(commands: Any) -> None:
    """``escalade bench``."""
    parser = add_command(
        commands,
        "bench",
        "ENV",
        _bench,
        examples=["HalfCheetah-v5 --workers 4 --rounds 3"],
    )
    add_environment(parser)
    add_argument(parser, "--rounds", "N", "alternating turns of training and raw simulator", "5")
    parser.add_argument(
        "--turn-seconds", dest="seconds", metavar="X", help="length of a turn in seconds (default: 3)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: lines of text)")
    add_options(parser, _BENCH)
    parser.set_defaults(own=("seconds",))
    parser.refusals = {flag(name): "is not measured by bench: leave it out" for name in NOT_MEASURED}


def _presets(parsed: argparse.Namespace) -> int:
    if parsed.preset is None:
        return _list()
    from escalade.config import presets

    shown = presets.read(parsed.preset)
    lines = toml_text(shown.options).splitlines()
    width = max(map(len, lines))
    say(f"# {parsed.preset}: as a --config file has it")
    for name, line in zip(shown.options, lines, strict=True):
        mark = "; tuned for the strategy" if name in presets.OF_STRATEGY and name != "strategy" else ""
        say(f"{line:{width}}  # {shorten(OPTIONS[name].metadata['help'], 80, placeholder=' …')}{mark}")
    if shown.result is None:
        say("# It has no measured result.")
    else:
        say("# What it reached, over the seeds that solved it; all_steps counts those of evaluations too:")
        say("".join(f"#   {line}\n" for line in toml_text(shown.result).splitlines()).rstrip())
    return 0


def _list() -> int:
    from rich.console import Console
    from rich.table import Column, Table

    from escalade.config import presets

    titles = ("strategy", "target", "solved", "steps", "seconds")
    table = Table(Column("preset", no_wrap=True), *titles, box=None)
    for name in presets.names():
        preset = presets.read(name)
        target = preset.options.get("target_return")
        table.add_row(name, str(preset.options["strategy"]), number(target), *_result(preset.result))
    with printing():
        Console(emoji=False).print(table)
    say("Steps of training and seconds: medians over the seeds that solved it; benchmarks/presets.md has")
    say("the worst. Those with - have no such runs yet. Names such as openai/humanoid are settings of")
    say("earlier systems: --preset NAME.")
    return 0


def _result(result: dict[str, Any] | None) -> list[str]:
    if result is None:
        return ["-"] * 3
    solved = f"{result['solved']} of {result['seeds']}"
    return [solved, f"{result['env_steps']:,}", number(result.get("seconds"))]


def _bench(parsed: argparse.Namespace) -> int:
    rounds = whole("rounds", parsed.rounds) or 5
    seconds = convert("seconds", parsed.seconds or "3") or 0.0  # none, which bench refuses
    config = config_typed(parsed).replace(**dict.fromkeys(NOT_MEASURED))  # a preset may have them
    warm_up_for(config)
    from escalade.api.bench import bench

    found = bench(config, seconds=seconds, rounds=rounds, report=_quiet if parsed.json else say)
    if parsed.json:
        say(json.dumps({"env": config.env} | vars(found)))
    else:
        say(
            f"{config.env} on {found.backend}, {found.workers} workers, population {found.population}, "
            f"{found.slots} slots each: {found.useful:,.0f} useful of {found.raw:,.0f} raw steps/s, "
            f"ratio {found.ratio:.2f} (medians of {found.rounds})"
        )
    return 0


def _quiet(line: str) -> None:
    """Print nothing: with ``--json`` the one object is all there is."""
