"""Follow a run in another process by reading its folder; the command ``watch``."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, NamedTuple

from escalade.cli.arguments import add_command, with_flags
from escalade.config.commands import flag
from escalade.config.files import is_evolved, read_either
from escalade.config.options import RESUMABLE, Config
from escalade.recorders import Goals, Recorder, Row, make_console, read_rows
from escalade.recorders.console import PlainConsole
from escalade.storage.run_folder import RunFolder
from escalade.support.output import print_line
from escalade.training.closing import closing_lines, resuming

_POLL_SECONDS = 0.5

State = Literal["running", "ended", "failed", "killed"]
"""``failed`` means that the process ended without writing a summary."""


class News(NamedTuple):
    """New rows and current state of a run."""

    rows: list[Row]
    """Rows since the previous call."""
    state: State
    process: str
    """Process of the run, such as ``process 12 on host``; empty if unknown."""


class Watch:
    """Read-only view of a run in another process, running or ended.

    Args:
        run: folder of the run, or the result of :func:`escalade.train`.

    Raises:
        InputError: the folder is not a run.
    """

    def __init__(self, run: str | PathLike[str]) -> None:
        self.folder = RunFolder.open(run)
        self.goals = _goals(self.folder)
        self._seen = 0  # last generation that was returned
        self._read: tuple[int, int] | None = None  # inode and size of progress.csv when it was last read

    def look(self) -> News:
        """Return the new rows and the state of the run.

        Raises:
            InputError: progress.csv is damaged.
        """
        held, process = self.folder.lock.status()  # before the rows, so that the last rows are not missed
        state: State
        if held in ("held", "killed"):
            state = "running" if held == "held" else "killed"
        elif self.folder.read_summary().get("stop_reason"):
            state = "ended"
        else:
            state = "failed" if held == "free" else "running"
        return News(self._new_rows(), state, process)

    def _new_rows(self) -> list[Row]:
        """Return the rows since the previous call, and again those repeated by a resumed run."""
        progress = self.folder.progress
        if not progress.exists():
            self._seen, self._read = 0, None
            return []
        found = progress.stat()
        if (found.st_ino, found.st_size) == self._read:
            return []
        self._read = found.st_ino, found.st_size
        rows = read_rows(progress)
        last = rows[-1].generation if rows else 0
        fresh = [row for row in rows if row.generation > min(self._seen, last)]
        self._seen = last
        return fresh


def _goals(folder: RunFolder) -> Goals:
    found = read_either(folder)
    if not isinstance(found, Config):  # runs of evolve do not store their limits
        title = f"{found.get('module')}: {found.get('strategy')}, population {found.get('population')}"
        return Goals(title, minimize=found.get("direction") == "minimize", print_evaluations=False)
    title = f"{found.env}: {found.strategy}, population {found.population}"
    return Goals(title, found.target_return, found.generations, found.env_steps, found.seconds)


def add_watch(commands: Any) -> None:
    """Add the command ``watch``."""
    parser = add_command(
        commands,
        "watch",
        "RUN",
        _watch,
        more="Stops when the run ends. Ctrl-C stops watching, not the run. The exit code is 1 if the run\n"
        "was killed or failed.",
        examples=["runs/CartPole-v1/ars-seed0-20250101-120000"],
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--once", action="store_true", help="print the current state and exit (default: follow the run)"
    )


def _watch(parsed: argparse.Namespace) -> int:
    watch = Watch(parsed.run)
    news = watch.look()
    if news.state == "running":
        at = "" if news.rows else ", in its first generation"
        print_line(f"running{at}{f': {news.process}' if news.process else ''}")
    # A finished run has no time left.
    unlimited = replace(watch.goals, generations=None, env_steps=None, seconds=None)
    goals = watch.goals if news.state == "running" else unlimited
    console: Recorder
    if parsed.once:
        console = PlainConsole(goals, sys.stdout)
    else:
        console = make_console(goals, sys.stdout, news.rows[:-1])
    try:
        for row in news.rows[-1:]:
            console.generation(row)
        while news.state == "running" and not parsed.once:
            time.sleep(_POLL_SECONDS)
            news = watch.look()
            for row in news.rows:
                console.generation(row)
    finally:
        console.close()
    return 0 if news.state == "running" else _end(watch, news)


def _end(watch: Watch, news: News) -> int:
    folder = watch.folder
    if news.state == "ended":
        for line in closing_lines(folder.read_summary(), folder.path):
            print_line(with_flags(line, {name: flag(name) for name in RESUMABLE}))
        return 0
    was = f"was killed ({news.process})" if news.state == "killed" else "failed without writing a summary"
    print_line(f"the run {was}; resume with: {resuming(folder.path, is_evolved(folder))}")
    return 1
