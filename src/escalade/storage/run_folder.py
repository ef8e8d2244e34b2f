"""Run folders: names of files, and creation, opening and cleaning of folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any

from escalade.errors import InputError, nearest
from escalade.storage.checkpoints import Checkpoints
from escalade.storage.files import (
    AnyPath,
    is_temporary,
    path_of,
    read_bytes,
    remove_strays,
    storage,
    write_bytes,
)
from escalade.storage.lock import LOCK, FolderLock
from escalade.storage.summary import is_summary
from escalade.support.numbers import counted, finite

CONFIG = "config.toml"
"""Name of the file that identifies a run folder."""
ZOO = Path(__file__).parents[1] / "zoo"
"""Folder of the policies in the package: run folders with only policy, config and summary."""
ZOO_PREFIX = "zoo:"
FILMS = ("video.mp4", "video.gif")
"""Names of videos of a run's latest policy."""
_MADE = re.compile(
    r"(video|policy|best)(-best)?(-center-\d+)?"
    r"(\.(?:mp4|gif|onnx|pt2|torchscript\.pt|(?:torchscript\.)?state\.safetensors))"
)
"""Pattern of names of videos and exported files of the latest or the best policy."""
_OTHERS = ("tensorboard", "wandb", "trackers.json")  # further output of a run


class RunFolder:
    """Folder of a run, with the paths of all its files."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path_of(path).absolute()  # a simulator may change the working directory
        self.config = self.path / CONFIG
        self.progress = self.path / "progress.csv"
        self.population = self.path / "population.csv"
        self.workers = self.path / "workers.csv"
        self.notes = self.path / "notes.csv"
        self.summary = self.path / "summary.json"
        self.curve = self.path / "curve.png"
        self.policy = self.path / "policy.safetensors"
        self.best = self.path / "best.safetensors"
        self.centers = self.path / "centers"
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self.lock = FolderLock(self.path)
        self._ours = False  # True if the folder was empty or did not exist

    @property
    def _packaged(self) -> bool:
        """True for a policy of the package."""
        return self.path.parent == ZOO

    @property
    def films(self) -> list[Path]:
        """Existing videos of its latest policy."""
        return [path for name in FILMS if (path := self.path / name).is_file()]

    def center(self, number: int) -> Path:
        """Return the path of the policy of one of several centers, and make its folder if needed."""
        with storage(self.centers):
            self.centers.mkdir(exist_ok=True)
        return self.centers / f"{number}.safetensors"

    def __fspath__(self) -> str:
        """Return the path, which makes the object usable as a path."""
        return str(self.path)

    @classmethod
    def create(cls, path: AnyPath | None, subject: str, label: str, runs: AnyPath = "runs") -> RunFolder:
        """Create the folder of a new run: ``path``, or ``SUBJECT/LABEL-TIME`` in ``runs`` if it is None.

        The caller holds the folder's lock, and has to release it at the end of the run.

        Raises:
            InputError: the folder cannot be made, contains a run or a file that a run would write, or is
                about to be used by a different run.
        """
        advice = "choose a different `run_dir`"
        path = _new_folder(path_of(runs), subject, label) if path is None else path_of(path, advice)
        folder = cls(path)
        with storage(path, advice):
            path.mkdir(parents=True, exist_ok=True)
            folder._ours = {file.name for file in path.iterdir()} <= {LOCK}
        folder._check_free()  # before the lock makes its file; and again with the lock held
        folder.lock.acquire()
        try:
            folder._check_free()
            with storage(path, advice):
                folder.checkpoints.make()
        except BaseException:
            folder.lock.release()
            raise
        return folder

    def _check_free(self) -> None:
        """Raise if the folder contains files of a run."""
        if self.config.exists():
            raise _in_use(self.path)
        if runs := [run for run in _runs_in(self.path) if (run / self.checkpoints.folder.name).is_dir()]:
            raise InputError(
                f"`run_dir` {self.path} contains {counted(len(runs), 'run')}; choose a new folder, such as "
                f"{self.path / 'new'}, or use `seeds` for several runs in one folder"
            )
        found = [file.name for file in self._files if file.exists()]
        if self.checkpoints.generations():
            found.append("checkpoints")
        if found:
            raise InputError(
                f"`run_dir` {self.path} contains {found[0]}, which a run would overwrite: "
                "choose a different folder"
            )

    @classmethod
    def open(cls, path: AnyPath) -> RunFolder:
        """Open a run folder or ``zoo:NAME`` for reading.

        Acquire its lock before writing.

        Raises:
            InputError: it is not a run folder.
        """
        folder = cls(located(path))
        try:
            if not folder.path.is_dir():
                raise InputError(f"run folder {path} does not exist{_similar(folder.path)}")
            if not folder.config.is_file():
                raise InputError(f"{path} is not a run folder: {_describe_content(folder.path)}")
        except OSError as problem:  # such as a name that is too long, or missing permission for a parent
            raise InputError(f"{path} cannot be opened: {problem.strerror}") from None
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock in the block.

        Raises:
            InputError: a different run holds it, or the folder is part of the package.
        """
        if self._packaged:
            name = ZOO_PREFIX + self.path.name
            raise InputError(f"{name} is read-only: start a new run from it with `start_from`")
        self.lock.acquire()
        try:
            yield
        finally:
            self.lock.release()

    def untouched(self) -> bool:
        """Return True if the run has not started: it has neither a checkpoint nor a row of progress.csv."""
        return not (self.checkpoints.generations() or self.policy.exists() or self._rows())

    def _rows(self) -> int:
        """Return the number of rows of progress.csv, 0 if it does not exist."""
        lines = len(read_bytes(self.progress).splitlines()) if self.progress.exists() else 0
        return max(0, lines - 1)

    @contextmanager
    def removed_if_untrained(self) -> Iterator[None]:
        """Remove the run's files if the block fails before the first generation is done.

        The folder is removed, too, if it is empty then: files of the environment are not removed. Nothing is
        removed if the folder was not empty before the run.
        """
        try:
            yield
        except Exception:
            if self._ours and self.path.is_dir() and not self._trained():
                for path in filter(self._writes, self.path.iterdir()):
                    if path.is_dir() and not path.is_symlink():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)
                with suppress(OSError):  # a different run uses it now, or it contains other files
                    self.path.rmdir()
            raise

    @property
    def _files(self) -> list[Path]:
        """Files and folders with an attribute."""
        return [value for value in vars(self).values() if isinstance(value, Path) and value != self.path]

    def _writes(self, path: Path) -> bool:
        """Return True for files and folders that a run or its trackers write."""
        own = {*(file.name for file in self._files), self.checkpoints.folder.name, LOCK, *_OTHERS}
        return path.name in own or is_temporary(path)

    def _trained(self) -> bool:
        """Return True if the run has done a generation."""
        # Every run starts with a checkpoint of generation 0.
        return self._rows() > 0 or any(self.checkpoints.generations())

    def sync_tables(self) -> None:
        """Sync the tables to disk, so that their rows survive a power failure."""
        for table in (self.progress, self.population, self.notes):
            with storage(table), suppress(FileNotFoundError), table.open("rb") as file:
                os.fsync(file.fileno())

    def forget_after(self, generation: int) -> None:
        """Remove checkpoints later than ``generation``, and temporary files of a killed run."""
        self.checkpoints.drop_after(generation)
        for folder in (self.path, self.checkpoints.folder, self.centers):
            with storage(folder):
                remove_strays(folder)

    def evolved(self, best: bool) -> Path:
        """Return the file with the final parameters of ``evolve``: of the best member, or of the center.

        Raises:
            InputError: the run has not ended.
        """
        if not self.summary.exists():
            raise InputError(
                f"{self.path} has not ended: call the same `evolve` with `resume=True` to continue"
            )
        return self.best if best else self.policy

    def forget_end(self) -> None:
        """Remove the results of an earlier end of the run, which are invalid once the run continues."""
        for file in (self.summary, self.policy, *self.centers.glob("*.safetensors")):
            with storage(file):
                file.unlink(missing_ok=True)

    def rename_made(self, latest: object, best: object) -> None:
        """Rename videos and exported files of the latest and the best policy, so that they are not replaced.

        Args:
            latest: suffix for files of the latest policy.
            best: suffix for files of the best policy.
        """
        with storage(self.path):
            made = [(file, match) for file in self.path.iterdir() if (match := _MADE.fullmatch(file.name))]
        for file, match in made:
            kind, of_best, center, ending = match.groups(default="")
            which = best if of_best or kind == "best" else latest
            name = f"{'video' if kind == 'video' else 'policy'}-{which}{center}{ending}"
            with storage(file):
                file.replace(self.path / name)

    def write_config(self, toml: str) -> None:
        """Write config.toml."""
        write_bytes(self.config, toml.encode())

    def named_after(self, checkpoint: str, name: str, best: str) -> Path:
        """Return the path of a file made from a policy, such as ``policy.onnx``.

        Args:
            checkpoint: ``latest``, ``best`` or a generation, whose number is added to ``name``.
            name: file name for the latest policy.
            best: file name for the best policy.
        """
        if self._packaged:
            return Path(f"{self.path.name}-{name}")  # in the working folder
        stem, dot, ending = name.partition(".")
        names = {"latest": name, "best": best}
        return self.path / names.get(checkpoint, f"{stem}-{checkpoint}{dot}{ending}")

    def read_summary(self) -> dict[str, Any]:
        """Read summary.json. Empty if the run has not ended, or the file or a number in it is damaged."""
        try:
            found = json.loads(read_bytes(self.summary))
        except (InputError, ValueError):
            return {}
        return found if is_summary(found) else {}

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write summary.json."""
        write_bytes(self.summary, (json.dumps(finite(summary), indent=2, allow_nan=False) + "\n").encode())


def zoo_names() -> list[str]:
    """Return the sorted names of the policies in the package, without the prefix."""
    return sorted(config.parent.name for config in ZOO.glob(f"*/{CONFIG}"))


def located(path: AnyPath) -> Path:
    """Return the path, or the folder of the policy ``zoo:NAME``.

    Raises:
        InputError: the path is invalid, or the policy does not exist.
    """
    text = os.fspath(path)
    if not text.startswith(ZOO_PREFIX):
        return path_of(path)
    name = text.removeprefix(ZOO_PREFIX)
    if name not in zoo_names():
        close = nearest(text, (ZOO_PREFIX + known for known in zoo_names()))
        raise InputError(f"policy {text} does not exist{close} ('escalade zoo' lists all policies)")
    return ZOO / name


def _in_use(path: Path) -> InputError:
    resume = f"'escalade resume {quote(str(path))}'"
    return InputError(
        f"`run_dir` {path} holds a run already: continue it with {resume} or choose a different folder"
    )


def _similar(path: Path) -> str:
    """Return a hint about a folder beside ``path`` with a similar name, or ""."""
    if not path.parent.is_dir():
        return ""
    return nearest(path.name, (other.name for other in path.parent.iterdir() if other.is_dir()))


def _describe_content(path: Path) -> str:
    """Describe the runs in a folder that is not a run folder itself."""
    runs = _runs_in(path)
    if not runs:
        return f"it has no {CONFIG}"
    newest = max(runs, key=lambda run: (run / CONFIG).stat().st_mtime)
    return f"it contains {counted(len(runs), 'run')}, the newest is {newest}: choose one of them"


def _runs_in(path: Path) -> list[Path]:
    """Return the run folders one or two levels below ``path``."""
    return [config.parent for config in (*path.glob(f"*/{CONFIG}"), *path.glob(f"*/*/{CONFIG}"))]


def _new_folder(runs: Path, subject: str, label: str) -> Path:
    """Make a new folder in ``runs``. Runs that start at the same time get different folders."""
    base = runs / subject.replace("/", "-") / f"{label}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in count(1):
        path = base if number == 1 else base.with_name(f"{base.name}-{number}")
        with storage(base), suppress(FileExistsError):
            path.mkdir(parents=True)
            break
    return path
