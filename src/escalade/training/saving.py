"""Write the checkpoints of a run, and reopen them for a new target."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Stored, Tensors, record
from escalade.training.progress import Progress

_SHARE = 50  # checkpoints may take 1/50 of the time


def reopened(content: Stored, target: State, direction: float) -> Stored:
    """Return a checkpoint's content. If its target is not ``target``, reopen the run, which may be solved."""
    if content.state["target"] == target:
        return content
    progress = record(Progress, content.state["progress"])
    progress.reopen(target["target_return"], direction)
    return Stored(content.tensors, {**content.state, "progress": asdict(progress), "target": target})


class Saver:
    """Writes checkpoints into ``folder``, as often as is cheap, or no checkpoints if it is None.

    Every ``snapshot_every``-th generation is always written, and never deleted. 0 turns this off.
    """

    def __init__(self, folder: RunFolder | None, snapshot_every: int = 0) -> None:
        self.folder = folder
        self.snapshot_every = snapshot_every
        self._rows = -1  # rows of the last saved state
        self._seconds = 0.0  # that the last save took
        self._last = time.monotonic()

    def save_if_due(
        self, progress: Progress, state: Callable[[], tuple[Tensors, State]], *, force: bool = False
    ) -> bool:
        """Save, unless nothing is new or checkpoints would take too much time. Return True if saved."""
        if self.folder is None or progress.rows == self._rows:
            return False
        snapshot = self.snapshot_every and progress.generation % self.snapshot_every == 0
        due = time.monotonic() - self._last >= _SHARE * self._seconds
        if not (force or due or snapshot):
            return False
        began = time.monotonic()
        # First, because resuming can remove rows newer than the checkpoint, but cannot add missing ones.
        self.folder.sync_tables()
        self.folder.checkpoints.save(progress.generation, *state(), self.snapshot_every)
        self.saved(progress)
        self._seconds = self._last - began
        return True

    def changed(self) -> None:
        """Record that the checkpoint on disk is out of date, although its generation is not."""
        self._rows = -1

    def saved(self, progress: Progress) -> None:
        """Record that the checkpoint on disk has the state of ``progress``."""
        self._rows, self._last = progress.rows, time.monotonic()
