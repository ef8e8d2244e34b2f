"""Write the tables of the guides that are generated from the code: strategies, networks, options, the zoo.

    python docs/tables.py            # write them
    python docs/tables.py --check    # list the outdated pages; write nothing

Each table is between two marks of its page, ``<!-- NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path

from escalade.config.commands import default_of, flag, form
from escalade.config.declared import readers_of
from escalade.config.options import OPTIONS, RESUMABLE
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.storage.run_folder import zoo_names
from escalade.strategies.base import Strategy
from escalade.strategies.registry import GROWTH_OPTIONS, STRATEGIES, StrategyEntry
from escalade.support.numbers import number
from escalade.wings.publish.commands import facts

HERE = Path(__file__).parent


def pages() -> dict[Path, str]:
    """Return the text of each page with its table generated from the code."""
    tables = {"strategies": strategies, "networks": networks, "options": options, "zoo": zoo}
    return {(path := HERE / f"{name}.md"): filled(path.read_text(), name, tables[name]()) for name in tables}


def filled(page: str, name: str, table: str) -> str:
    """Return ``page`` with ``table`` between ``<!-- name -->`` and ``<!-- end -->``."""
    begin, end = f"<!-- {name} -->\n", "\n<!-- end -->"
    made, count = re.subn(f"(?s){begin}.*?{end}", lambda _: begin + table + end, page)
    if count != 1:
        raise SystemExit(f"{name}.md must have {begin.strip()} once, and {end.strip()} after it")
    return made


def strategies() -> str:
    """Return the table of strategies."""
    head = ["| class | name | paper | good for | its own options |", "| --- | --- | --- | --- | --- |"]
    rows = [
        f"| `{entry.class_name}` | `{name}` | {entry.paper} | {entry.use} | {_own(entry) or '-'} |"
        for name, entry in STRATEGIES.items()
    ]
    return "\n".join(head + rows)


def _own(entry: StrategyEntry) -> str:
    shared = {*inspect.signature(Strategy.__init__).parameters, *OPTIONS, "sigma"}
    return ", ".join(f"`{name}`" for name in inspect.signature(entry.load()).parameters if name not in shared)


def networks() -> str:
    """Return the table of named networks."""
    head = ["| name | network | designed for | options |", "| --- | --- | --- | --- |"]
    rows = [
        f"| `{name}` | {entry.title} | {entry.use} | {', '.join(sorted(entry.options)) or '-'} |"
        for name, entry in ARCHITECTURES.items()
    ]
    return "\n".join(head + rows)


def zoo() -> str:
    """Return the table of included policies."""
    head = ["| name | target | return | weights | command |", "| --- | --- | --- | --- | --- |"]
    rows = [
        f"| `{found['name']}` | {number(found['target_return'])} | {number(found['return_mean'])} "
        f"± {number(found['return_std'])} | {found['parameters']} | `{found['command']}` |"
        for found in map(facts, zoo_names())
    ]
    return "\n".join(head + rows)


def options() -> str:
    """Return all options, in a table for each group."""
    groups: dict[str, list[str]] = {}
    for name, option in OPTIONS.items():
        written = "ENV" if name == "env" else f"{flag(name)} {form(name)}".strip()
        both = f"`{name}`<br>`{written}`"  # in one cell, so that the table fits on the page
        cells = [both, default_of(name), option.metadata["help"], takers(name)]
        row = " | ".join(cell.replace("|", "\\|") for cell in cells)
        groups.setdefault(option.metadata["group"], []).append(f"| {row} |")
    head = "| option, flag | default | description | accepted by |\n| --- | --- | --- | --- |"
    return "\n\n".join(
        f"### {title[0].upper()}{title[1:]}\n\n{head}\n" + "\n".join(rows) for title, rows in groups.items()
    )


def takers(name: str) -> str:
    """Return the commands, strategies or networks that accept an option."""
    who = ["train, resume"] if name in RESUMABLE else ["train"]
    for readers in map(readers_of, OPTIONS.values()):
        who += [", ".join(readers[name])] if name in readers else []
    if name in GROWTH_OPTIONS:
        who.append(", ".join(strategy for strategy, entry in STRATEGIES.items() if entry.grows))
    return "; ".join(who)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is outdated")
    old = {path: text for path, text in pages().items() if path.read_text() != text}
    if not parser.parse_args().check:
        for path, text in old.items():
            path.write_text(text)
    elif old:
        sys.exit(f"outdated; run python docs/tables.py: {', '.join(map(str, old))}")


if __name__ == "__main__":
    main()
