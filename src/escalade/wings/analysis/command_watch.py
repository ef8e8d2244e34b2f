"""The command that follows a run from another terminal: ``watch``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from escalade.cli.arguments import add_command, with_flags
from escalade.cli.output import say
from escalade.config.commands import flag
from escalade.config.options import RESUMABLE
from escalade.training.closing import closing_lines, resuming

if TYPE_CHECKING:
    from escalade.wings.analysis.watch import News, Watch


def add_watch(commands: Any) -> None:
    """``escalade watch``."""
    parser = add_command(
        commands,
        "watch",
        "RUN",
        _watch,
        more="It ends when the run ends; Ctrl-C leaves the run running. Exit code 1: the run was killed or\n"
        "failed.",
        examples=["runs/CartPole-v1/ars-seed0-20250101-120000"],
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--once", action="store_true", help="print how the run is now, and end (default: follow it)"
    )


def _watch(parsed: argparse.Namespace) -> int:
    from escalade.wings.analysis.watch import Watch

    watch = Watch(parsed.run)
    return _once(watch) if parsed.once else _follow(watch)


def _once(watch: Watch) -> int:
    from escalade.recorders.console import PlainConsole

    news = watch.look()
    console = PlainConsole(watch.goals, sys.stdout, news.rows[:-1], paced=True)
    for row in news.rows[-1:]:
        console.generation(row)
    console.close()
    if news.state == "running":
        at = "" if news.rows else ", in its first generation"
        say(f"running{at}{_by(news)}")
        return 0
    return _end(watch, news)


def _follow(watch: Watch) -> int:
    from escalade.recorders import make_console

    news = watch.look()
    if news.state == "running" and not news.rows:
        say(f"{watch.folder.path} is in its first generation{_by(news)}")
    console = make_console(watch.goals, None, news.rows[:-1], paced=True)
    try:
        for row in news.rows[-1:]:
            console.generation(row)
        if news.state == "running":
            for news in watch.follow():
                for row in news.rows:
                    console.generation(row)
    finally:
        console.close()
    return _end(watch, news)


def _by(news: News) -> str:
    return f": {news.process}" if news.process else ""


def _end(watch: Watch, news: News) -> int:
    folder = watch.folder
    if news.state == "ended":
        for line in closing_lines(folder.read_summary(), folder.path):
            say(with_flags(line, {name: flag(name) for name in RESUMABLE}))
        return 0
    from escalade.config.files import is_evolved

    was = f"was killed ({news.process})" if news.state == "killed" else "failed: it left no summary"
    say(f"the run {was}; go on with: {resuming(folder.path, is_evolved(folder))}")
    return 1
