"""TensorBoard: event files in the run folder's ``tensorboard``."""

from __future__ import annotations

from collections.abc import Mapping

from escalade.recorders.run_info import RunInfo

FOLDER = "tensorboard"
_FLUSH_SECONDS = 10


class TensorBoardLog:
    """Scalars by generation, and notes as text. What was logged of generations that run again goes."""

    def __init__(self, run: RunInfo) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = run.first if run.first > 1 or run.repeated else None
        folder = str(run.files.path / FOLDER)
        self._writer = SummaryWriter(folder, purge_step=purge, flush_secs=_FLUSH_SECONDS)
        self._generation = run.first - 1

    def log(self, generation: int, numbers: Mapping[str, float]) -> None:
        self._generation = generation
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, generation)

    def note(self, text: str) -> None:
        self._writer.add_text("notes", text, self._generation)

    def close(self) -> None:
        self._writer.close()
