"""Weights & Biases: one tracked run per run folder, even if it is resumed several times on several machines.

The id of the tracked run is stored in the folder's trackers.json.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escalade.recorders.goals import RunInfo
from escalade.storage.files import read_bytes, write_bytes
from escalade.wings.trackers.tracker import Tracker

FILE = "trackers.json"
PROJECT = "escalade"
"""Default project, unless WANDB_PROJECT is set."""
_START_SECONDS = 30.0
_END_SECONDS = 60.0


class Wandb(Tracker):
    """Logs numbers by generation.

    Generations repeated after a kill are not logged twice. Without an API key, everything is written to the
    run folder; ``wandb sync`` uploads it later.
    """

    title = "Weights & Biases"

    def start(self, run: RunInfo) -> None:
        import wandb

        folder = run.files.path
        settings = wandb.Settings(
            silent=True,
            console="off",
            disable_git=True,
            disable_code=True,
            init_timeout=_START_SECONDS,
            finish_timeout=_END_SECONDS,
        )
        chosen: Any = os.environ.get("WANDB_MODE")
        known = bool(chosen) or wandb.login(prompt=False, verify=False)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name="/".join(folder.resolve().parts[-2:]),  # the last part alone is often just seed0
            id=run_id(folder / FILE),
            dir=folder,
            config=dict(run.options),
            allow_val_change=True,
            resume="allow",
            mode=chosen if known else "offline",
            reinit="create_new",
            settings=settings,
        )
        # The server ignores repeated steps, but a file that is uploaded later must not contain them.
        self._seen = run.first - 1 + run.repeated if self._run.offline else 0
        if not known:
            run.report(f"no API key of Weights & Biases found; the run is written to {folder / 'wandb'}")

    def log(self, generation: int, numbers: Mapping[str, float]) -> None:
        if generation > self._seen:
            self._run.log(dict(numbers), step=generation)

    def finish(self) -> None:
        self._run.finish()


def run_id(path: Path) -> str:
    """Return the id in a run folder's trackers.json.

    If there is no file, create a new id and write it.

    Raises:
        InputError: the file cannot be read. A new id would start a separate curve.
    """
    if path.exists():
        return str(json.loads(read_bytes(path))["wandb"])
    made = uuid.uuid4().hex[:12]
    write_bytes(path, (json.dumps({"wandb": made}) + "\n").encode())
    return made
