"""Follow a run from outside: what its folder says, as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from os import PathLike
from typing import Literal, NamedTuple

from escalade.config.files import read_either
from escalade.config.options import Config
from escalade.recorders import Goals, Row, read_rows
from escalade.storage.run_folder import RunFolder

_POLL_SECONDS = 0.5

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
        InputError: there is no run in it.
    """

    def __init__(self, run: str | PathLike[str]) -> None:
        self.folder = RunFolder.open(run)
        self.goals = _goals(self.folder)
        self._seen = 0  # the last generation that was given

    def look(self) -> News:
        """Return the new rows and the state of the run.

        Raises:
            InputError: progress.csv is damaged.
        """
        held, process = self.folder.lock.look()  # first: rows that come before an end are then read too
        state: State
        if held in ("held", "killed"):
            state = "running" if held == "held" else "killed"
        elif self.folder.read_summary().get("stop_reason"):
            state = "ended"
        else:
            state = "failed" if held == "free" else "running"
        return News(self._new_rows(), state, process)

    def _new_rows(self) -> list[Row]:
        """The rows since the last look; those that a resumed run has begun again come again."""
        progress = self.folder.progress
        rows = read_rows(progress) if progress.exists() else []
        last = rows[-1].generation if rows else 0
        fresh = [row for row in rows if row.generation > min(self._seen, last)]
        self._seen = last
        return fresh

    def follow(self) -> Iterator[News]:
        """Look again and again, until the run has ended."""
        while (news := self.look()).state == "running":
            yield news
            time.sleep(_POLL_SECONDS)
        yield news


def _goals(folder: RunFolder) -> Goals:
    found = read_either(folder)
    if not isinstance(found, Config):  # of evolve, whose limits are not in its folder
        title = f"{found.get('module')}: {found.get('strategy')}, population {found.get('population')}"
        return Goals(title, minimize=found.get("direction") == "minimize", print_evaluations=False)
    title = f"{found.env}: {found.strategy}, population {found.population}"
    return Goals(title, found.target_return, found.generations, found.env_steps, found.seconds)
