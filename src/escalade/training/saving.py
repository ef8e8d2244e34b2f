"""The checkpoints of a run: when one is written, and what a resumed run goes on from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Stored, Tensors, record
from escalade.training.progress import Progress

_SHARE = 50  # checkpoints may take one part in this of the time


def reopened(content: Stored, target: State, direction: float) -> Stored:
    """A checkpoint's content; for another ``target`` than its own, that of a run which may go on."""
    if content.state["target"] == target:
        return content
    progress = record(Progress, content.state["progress"])
    progress.reopen(target["target_return"], direction)
    return Stored(content.tensors, {**content.state, "progress": asdict(progress), "target": target})


class Saver:
    """Writes checkpoints into ``folder`` (None writes none), as often as they are cheap.

    Every ``snapshot_every``-th generation (0: none) is written whatever it costs, and kept for good.
    """

    def __init__(self, folder: RunFolder | None, snapshot_every: int = 0) -> None:
        self.folder = folder
        self.snapshot_every = snapshot_every
        self._rows = -1  # of the state that was saved last
        self._seconds = 0.0  # that saving it took
        self._last = time.monotonic()

    def save_if_due(
        self, progress: Progress, state: Callable[[], tuple[Tensors, State]], *, force: bool = False
    ) -> bool:
        """Save, unless nothing is new or it would take more than its share of the time; whether it did."""
        if self.folder is None or progress.rows == self._rows:
            return False
        kept = self.snapshot_every and progress.generation % self.snapshot_every == 0
        due = time.monotonic() - self._last >= _SHARE * self._seconds
        if not (force or due or kept):
            return False
        began = time.monotonic()
        self.folder.sync_tables()  # first: resuming cuts back rows that are ahead, and cannot make up for any
        self.folder.checkpoints.save(progress.generation, *state(), self.snapshot_every)
        self.saved(progress)
        self._seconds = self._last - began
        return True

    def changed(self) -> None:
        """Note that the state on disk is no longer the run's, though it is of the same generation."""
        self._rows = -1

    def saved(self, progress: Progress) -> None:
        """Note that the state on disk is that of ``progress``."""
        self._rows, self._last = progress.rows, time.monotonic()
