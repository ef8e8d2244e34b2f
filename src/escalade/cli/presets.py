"""The command ``presets``, which shows tuned settings."""

from __future__ import annotations

import argparse
from typing import Any

from escalade.cli.arguments import add_command
from escalade.config.conversion import toml_text
from escalade.support.numbers import number
from escalade.support.output import print_line, printing


def add_presets(commands: Any) -> None:
    """``escalade presets``."""
    parser = add_command(
        commands, "presets", "[PRESET]", _presets, examples=["", "Acrobot-v1", "openai/humanoid"]
    )
    parser.add_argument("preset", nargs="?", metavar="PRESET", help="preset to show (default: list all)")


def _presets(parsed: argparse.Namespace) -> int:
    if parsed.preset is None:
        return _list()
    from escalade.config import presets

    shown = presets.read(parsed.preset)
    print_line(f"# {parsed.preset}, in the format of a --config file")
    print_line(toml_text(shown.options).rstrip())
    if shown.result is None:
        print_line("# Result: not measured")
    else:
        print_line("# Result over the seeds that solved it; all_steps includes the steps of evaluations:")
        print_line("".join(f"#   {line}\n" for line in toml_text(shown.result).splitlines()).rstrip())
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
    print_line("Training steps and seconds are medians over the seeds that solved the environment;")
    print_line("benchmarks/presets.md lists the worst seeds. Presets with - have not been measured.")
    print_line("Names such as openai/humanoid are settings of earlier systems; use them with --preset NAME.")
    return 0


def _result(result: dict[str, Any] | None) -> list[str]:
    if result is None:
        return ["-"] * 3
    solved = f"{result['solved']} of {result['seeds']}"
    return [solved, f"{result['env_steps']:,}", number(result.get("seconds"))]
