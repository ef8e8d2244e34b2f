"""TensorBoard: event files in the folder ``tensorboard`` of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escalade.recorders.goals import RunInfo
from escalade.wings.trackers.tracker import Tracker

FOLDER = "tensorboard"
_FLUSH_SECONDS = 10
_RESULT = "eval/return_mean"
_GROUPS = {
    "strategy": ("sigma", "lr", "update_ratio", "unperturbed_rank"),
    "time": ("generation", "episodes", "env_steps", "seconds", "steps_per_second"),
}
"""Groups of columns, besides ``eval`` and ``population``."""


class TensorBoard(Tracker):
    """Logs scalars over environment steps (or generations if there are no steps), notes and hparams.

    If a resumed run repeats generations, their earlier entries are removed.
    """

    title = "TensorBoard"

    def start(self, run: RunInfo) -> None:
        from torch.utils.tensorboard import SummaryWriter, summary

        earlier = run.earlier
        self._at = _place(earlier[-1].generation, earlier[-1].env_steps) if earlier else 0
        purge = self._at + 1 if run.first > 1 or run.repeated else None
        folder = run.files.path / FOLDER
        _wait_for_the_next_second(folder)
        self._writer = SummaryWriter(str(folder), purge_step=purge, flush_secs=_FLUSH_SECONDS)
        if run.first == 1:
            options = {name: _plain(value) for name, value in run.options.items() if value is not None}
            hparams: Any = summary.hparams  # both are untyped
            writer: Any = self._writer.file_writer
            for part in hparams(options, {_RESULT: 0.0}):
                writer.add_summary(part)

    def log(self, generation: int, numbers: Mapping[str, float]) -> None:
        self._at = _place(generation, numbers.get("env_steps"))
        for name, value in numbers.items():
            self._writer.add_scalar(tag(name), value, self._at)

    def write_note(self, text: str) -> None:
        self._writer.add_text("notes", text, self._at)

    def finish(self) -> None:
        self._writer.close()


def tag(column: str) -> str:
    """Return the tag of a column's scalars, as ``group/name``."""
    if column.startswith("eval_"):
        return f"eval/{column.removeprefix('eval_')}"
    return next(
        (f"{group}/{column}" for group, members in _GROUPS.items() if column in members),
        f"population/{column}",
    )


def _place(generation: int, env_steps: float | None) -> int:
    return generation if env_steps is None else int(env_steps)


def _plain(value: Any) -> bool | int | float | str:
    return value if isinstance(value, bool | int | float | str) else json.dumps(value, default=str)


def _wait_for_the_next_second(folder: Path) -> None:
    """Wait if a file was created in this second, because names start with the second and define the order."""
    while list(folder.glob(f"events.out.tfevents.{int(time.time())}.*")):
        time.sleep(0.05)
