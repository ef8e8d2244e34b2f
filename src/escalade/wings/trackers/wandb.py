"""Weights & Biases: one run of theirs for one run folder, wherever and however often it is resumed.

Their id of it is in the folder's trackers.json, so that whoever has the folder goes on with the same curves.
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
"""The project that shows runs, unless WANDB_PROJECT names another."""
_START_SECONDS = 30.0
_END_SECONDS = 60.0


class Wandb(Tracker):
    """Numbers by generation. Those of generations that were logged before a kill are not logged twice.

    Without a key to their server everything is written to the run folder; ``wandb sync`` sends it later.
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
            name="/".join(folder.resolve().parts[-2:]),  # the runs of each series are seed0, seed1, ...
            id=run_id(folder / FILE),
            dir=folder,
            config=dict(run.options),
            allow_val_change=True,
            resume="allow",
            mode=chosen if known else "offline",
            reinit="create_new",
            settings=settings,
        )
        # Their server drops steps that it has; a file that is sent later must not hold them again.
        self._seen = run.first - 1 + run.repeated if self._run.offline else 0
        if not known:
            run.say(f"Weights & Biases knows no key here: the run is written to {folder / 'wandb'}")

    def log(self, generation: int, numbers: Mapping[str, float]) -> None:
        if generation > self._seen:
            self._run.log(dict(numbers), step=generation)

    def finish(self) -> None:
        self._run.finish()


def run_id(path: Path) -> str:
    """The id in a run folder's trackers.json; a new one, which is written there, if there is no file.

    Raises:
        InputError: the file cannot be read: another id would begin another curve.
    """
    if path.exists():
        return str(json.loads(read_bytes(path))["wandb"])
    made = uuid.uuid4().hex[:12]
    write_bytes(path, (json.dumps({"wandb": made}) + "\n").encode())
    return made
