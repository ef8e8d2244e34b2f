"""TensorBoard: event files in the run folder's ``tensorboard``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from escalade.recorders.run_info import RunInfo

FOLDER = "tensorboard"
_FLUSH_SECONDS = 10


class TensorBoardLog:
    """Scalars by generation, and notes as text. What was logged of generations that run again goes."""

    def __init__(self, run: RunInfo) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = run.first if run.first > 1 or run.repeated else None
        folder = run.files.path / FOLDER
        _wait_for_the_next_second(folder)
        self._writer = SummaryWriter(str(folder), purge_step=purge, flush_secs=_FLUSH_SECONDS)
        self._generation = run.first - 1

    def log(self, generation: int, numbers: Mapping[str, float]) -> None:
        self._generation = generation
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, generation)

    def note(self, text: str) -> None:
        self._writer.add_text("notes", text, self._generation)

    def close(self) -> None:
        self._writer.close()


def _wait_for_the_next_second(folder: Path) -> None:
    """Wait where a file was begun in this second: their names begin with it, and order them when read."""
    while list(folder.glob(f"events.out.tfevents.{int(time.time())}.*")):
        time.sleep(0.05)
