"""Follow a run from outside: what its folder says, as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from os import PathLike, fspath
from typing import Literal, NamedTuple

from escalade.config.files import read_either
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.recorders import Goals, Row
from escalade.recorders.progress import ProgressTail
from escalade.storage.run_folder import RunFolder

_POLL_SECONDS = 0.5
_TIMES = 10.0  # the least wait between two readings, as a multiple of the time that one takes

State = Literal["running", "ended", "failed", "killed"]
"""``failed``: it ended by itself, and left no summary of how."""


class News(NamedTuple):
    """The findings of a look at a run's folder."""

    rows: list[Row]
    """Rows since the look before."""
    state: State
    process: str
    """The process that runs it, or ran it until it was killed: ``process 12 on host``; empty if unknown."""


class Watch:
    """Looks at the folder of a run that another process runs, or has run. Nothing is written.

    Args:
        run: the run's folder, or what :func:`escalade.train` returned.

    Raises:
        InputError: there is no run in it, or a policy alone, as in the zoo.
    """

    def __init__(self, run: str | PathLike[str]) -> None:
        self.folder = RunFolder.open(run)
        if self.folder.policy.exists() and not self.folder.progress.exists():
            raise InputError(f"{fspath(run)} is a policy without its run: there is nothing to follow")
        self.goals = _goals(self.folder)
        self._tail = ProgressTail(self.folder.progress)

    def look(self) -> News:
        """Return what is new, and how the run is.

        Raises:
            InputError: progress.csv is damaged.
        """
        state, process = self._state()  # first: rows that come before an end are then read too
        return News(self._tail.rows(), state, process)

    def follow(self) -> Iterator[News]:
        """Look again and again, until the run has ended."""
        while True:
            began = time.monotonic()
            news = self.look()
            yield news
            if news.state != "running":
                return
            time.sleep(max(_POLL_SECONDS, _TIMES * (time.monotonic() - began)))

    def _state(self) -> tuple[State, str]:
        held, process = self.folder.lock.look()
        if held in ("held", "killed"):
            return ("running" if held == "held" else "killed"), process
        if held == "free":
            return ("ended" if self._summarized() else "failed"), ""
        return ("ended" if self._summarized() else "running"), ""

    def _summarized(self) -> bool:
        return isinstance(self.folder.read_summary().get("stop_reason"), str)


def _goals(folder: RunFolder) -> Goals:
    found = read_either(folder)
    if not isinstance(found, Config):  # of evolve, whose limits are not in its folder
        title = f"{found.get('module')}: {found.get('strategy')}, population {found.get('population')}"
        return Goals(title, minimize=found.get("direction") == "minimize", print_evaluations=False)
    title = f"{found.env}: {found.strategy}, population {found.population}"
    return Goals(title, found.target_return, found.generations, found.env_steps, found.seconds)
