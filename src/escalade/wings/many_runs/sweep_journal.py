"""Optuna's journal of a sweep, whose disk may be full."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend

from escalade.storage.files import storage


class Journal(JournalFileBackend):
    """A file of Optuna's operations, one a line; a line is written whole or not at all."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with storage(self._path):
            before = self._path.stat().st_size
            try:
                super().append_logs(logs)
            except OSError:
                os.truncate(self._path, before)  # other trials may write behind it once there is room
                raise
