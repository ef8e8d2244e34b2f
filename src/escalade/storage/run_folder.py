"""A run is a folder that a person can read."""

from __future__ import annotations

import json
import math
import time
from os import PathLike
from pathlib import Path
from typing import Any

from escalade.errors import InputError, nearest
from escalade.storage.checkpoints import Checkpoints
from escalade.storage.files import remove_strays, storage, write_bytes


class RunFolder:
    """Where everything of a run is: the one place that knows the names of its files."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.progress = self.path / "progress.csv"
        self.summary = self.path / "summary.json"
        self.curve = self.path / "curve.png"
        self.policy = self.path / "policy.safetensors"
        self.best = self.path / "best.safetensors"
        self.checkpoints = Checkpoints(self.path / "checkpoints")

    @classmethod
    def create(cls, path: str | PathLike[str] | None, subject: str, label: str) -> RunFolder:
        """A new folder for a run: ``path``, or where that is None ``runs/SUBJECT/LABEL-TIME``.

        Raises:
            InputError: the folder cannot be made, or holds a run already.
        """
        folder = cls(_fresh(subject, label) if path is None else path)
        path = folder.path
        if folder.config.exists():
            raise InputError(
                f"--run-dir {path} holds a run already: go on with 'escalade resume {path}' or name another"
            )
        with storage(path):
            path.mkdir(parents=True, exist_ok=True)
            folder.checkpoints.folder.mkdir(exist_ok=True)
        return folder

    @classmethod
    def open(cls, path: str | PathLike[str]) -> RunFolder:
        """The folder of an earlier run.

        Raises:
            InputError: there is no run in it.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            hint = ""
            if folder.path.parent.is_dir():
                hint = nearest(folder.path.name, (p.name for p in folder.path.parent.iterdir() if p.is_dir()))
            raise InputError(f"there is no run folder {path}{hint}")
        if not folder.config.is_file():
            raise InputError(f"{path} is not a run folder: it has no config.toml")
        return folder

    def untouched(self) -> bool:
        """Whether nothing of the run was done yet: no checkpoint, and no row of progress."""
        if self.checkpoints.generations():
            return False
        return not self.progress.exists() or len(self.progress.read_bytes().splitlines()) <= 1

    def forget_after(self, generation: int) -> None:
        """Drop checkpoints later than ``generation``, and what a killed run left half written."""
        self.checkpoints.drop_after(generation)
        for folder in (self.path, self.checkpoints.folder):
            remove_strays(folder)

    def write_config(self, toml: str) -> None:
        """Write config.toml."""
        write_bytes(self.config, toml.encode())

    def ended_at_best(self) -> bool:
        """Whether the policy as the run left it did better in its last evaluation than any before."""
        try:
            summary = json.loads(self.summary.read_text(encoding="utf-8"))
            last, best = summary["eval_return_mean"], summary["best_eval_return"]
            return bool(summary["generations"] == max(self.checkpoints.generations()) and last > best)
        except (OSError, ValueError, KeyError, TypeError):
            return False  # it has not ended, or had nothing to compare

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write summary.json."""
        # JSON has no NaN and no infinity: what is not a number is null.
        plain = {key: None if _not_finite(value) else value for key, value in summary.items()}
        write_bytes(self.summary, (json.dumps(plain, indent=2, allow_nan=False) + "\n").encode())


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _fresh(subject: str, label: str) -> Path:
    """A new folder under runs/, made at once: two runs that start together must not share one."""
    base = Path("runs") / subject.replace("/", "-") / f"{label}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = base, 1
    with storage(base):
        while True:
            try:
                path.mkdir(parents=True)
                return path
            except FileExistsError:
                number += 1
                path = base.with_name(f"{base.name}-{number}")
