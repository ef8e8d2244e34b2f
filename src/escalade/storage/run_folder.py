"""A run is a folder that a person can read."""

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
"""The name of the file by which a run's folder is known."""
ZOO = Path(__file__).parents[1] / "zoo"
"""The folder of the policies that come with the package: runs of policy, config and summary alone."""
ZOO_PREFIX = "zoo:"
FILMS = ("video.mp4", "video.gif")
"""Names of the films of a run's latest policy."""
_MADE = re.compile(
    r"(video|policy|best)(-best)?(-centre-\d+)?"
    r"(\.(?:mp4|gif|onnx|pt2|torchscript\.pt|(?:torchscript\.)?state\.safetensors))"
)
"""Names of films and exported files of the latest or the best policy."""
_OTHERS = ("tensorboard", "wandb", "trackers.json")  # which a run writes too


class RunFolder:
    """The folder of a run: the one place that knows the names of its files."""

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
        self.centers = self.path / "centres"
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self.lock = FolderLock(self.path)
        self._ours = False  # whether it was empty, or not there

    @property
    def _packaged(self) -> bool:
        """True where it is of a policy that comes with the package."""
        return self.path.parent == ZOO

    @property
    def films(self) -> list[Path]:
        """The films of its latest policy that are there: an MP4, a GIF."""
        return [path for name in FILMS if (path := self.path / name).is_file()]

    def center(self, number: int) -> Path:
        """Return the path of a centre's policy, of several; its folder is made where there is none."""
        with storage(self.centers):
            self.centers.mkdir(exist_ok=True)
        return self.centers / f"{number}.safetensors"

    def __fspath__(self) -> str:
        """Its path, so that the folder can be given wherever a path can."""
        return str(self.path)

    @classmethod
    def create(cls, path: AnyPath | None, subject: str, label: str, runs: AnyPath = "runs") -> RunFolder:
        """A new folder for a run: ``path``, or ``SUBJECT/LABEL-TIME`` in the folder ``runs`` if it is None.

        The caller holds the folder's lock, and releases it when the run has ended.

        Raises:
            InputError: the folder cannot be made, holds a run already or a file that a run would write, or
            another run is about to use it.
        """
        mend = "choose another `run_dir`"
        path = _fresh(path_of(runs), subject, label) if path is None else path_of(path, mend)
        folder = cls(path)
        with storage(path, mend):
            path.mkdir(parents=True, exist_ok=True)
            folder._ours = {file.name for file in path.iterdir()} <= {LOCK}
        folder._check_free()  # before the lock leaves its file there; and once nobody else can make a run
        folder.lock.acquire()
        try:
            folder._check_free()
            with storage(path, mend):
                folder.checkpoints.make()
        except BaseException:
            folder.lock.release()
            raise
        return folder

    def _check_free(self) -> None:
        """Refuse a folder that a new run would not have for itself."""
        if self.config.exists():
            raise _taken(self.path)
        if runs := [run for run in _runs_in(self.path) if (run / self.checkpoints.folder.name).is_dir()]:
            raise InputError(
                f"`run_dir` {self.path} holds {counted(len(runs), 'run')}; name a folder of its own, such as "
                f"{self.path / 'new'}, or use `seeds` for several runs in one folder"
            )
        found = [file.name for file in self._files if file.exists()]
        if self.checkpoints.generations():
            found.append("checkpoints")
        if found:
            raise InputError(
                f"`run_dir` {self.path} holds {found[0]}, which a run would write over: choose another"
            )

    @classmethod
    def open(cls, path: AnyPath) -> RunFolder:
        """The folder of an earlier run, or of ``zoo:NAME``, to read; who writes into it takes its lock first.

        Raises:
            InputError: there is no run in it.
        """
        folder = cls(located(path))
        try:
            if not folder.path.is_dir():
                raise InputError(f"there is no run folder {path}{_similar(folder.path)}")
            if not folder.config.is_file():
                raise InputError(f"{path} is not a run folder: {_held(folder.path)}")
        except OSError as problem:  # such as a name that is too long, or a folder above that is closed to us
            raise InputError(f"{path} cannot be opened: {problem.strerror}") from None
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock.

        Raises:
            InputError: another run holds it, or it is one of the package's own.
        """
        if self._packaged:
            name = ZOO_PREFIX + self.path.name
            raise InputError(f"{name} is only read: a new run may begin with it, as `start_from`")
        self.lock.acquire()
        try:
            yield
        finally:
            self.lock.release()

    def untouched(self) -> bool:
        """True where nothing of the run was done yet: no checkpoint, and no row of progress."""
        return not (self.checkpoints.generations() or self.policy.exists() or self._rows())

    def _rows(self) -> int:
        """The rows of progress.csv; none where it is not there."""
        lines = len(read_bytes(self.progress).splitlines()) if self.progress.exists() else 0
        return max(0, lines - 1)

    @contextmanager
    def kept_if_trained(self) -> Iterator[None]:
        """Remove a run's files where what is done in here fails before the run has had a generation.

        The folder goes too if nothing else is in it: what the environment has written there stays. Nothing
        is removed where the folder held something before.
        """
        try:
            yield
        except Exception:
            if self._ours and self.path.is_dir() and not self._began():
                for path in filter(self._writes, self.path.iterdir()):
                    if path.is_dir() and not path.is_symlink():
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink(missing_ok=True)
                with suppress(OSError):  # another run has begun in it, or it holds something else
                    self.path.rmdir()
            raise

    @property
    def _files(self) -> list[Path]:
        """The files and folders that have an attribute here."""
        return [value for value in vars(self).values() if isinstance(value, Path) and value != self.path]

    def _writes(self, path: Path) -> bool:
        """Return whether something in the folder is of a run's own, or of its trackers'."""
        own = {*(file.name for file in self._files), self.checkpoints.folder.name, LOCK, *_OTHERS}
        return path.name in own or is_temporary(path)

    def _began(self) -> bool:
        """Return whether the run had a generation."""
        # A checkpoint of generation 0 is how the run begins.
        return self._rows() > 0 or any(self.checkpoints.generations())

    def sync_tables(self) -> None:
        """Have the rows so far on the disk, where a loss of power leaves them."""
        for table in (self.progress, self.population, self.notes):
            with storage(table), suppress(FileNotFoundError), table.open("rb") as file:
                os.fsync(file.fileno())

    def forget_after(self, generation: int) -> None:
        """Drop checkpoints later than ``generation``, and what a killed run left half written."""
        self.checkpoints.drop_after(generation)
        for folder in (self.path, self.checkpoints.folder, self.centers):
            with storage(folder):
                remove_strays(folder)

    def evolved(self, best: bool) -> Path:
        """The file of parameters that a run of ``evolve`` ended with: the best member's, or the centre's.

        Raises:
            InputError: it has not ended.
        """
        if not self.summary.exists():
            raise InputError(f"{self.path} has not ended: the same `evolve` with `resume=True` goes on")
        return self.best if best else self.policy

    def forget_end(self) -> None:
        """Remove what an earlier end of the run left: one that is killed from now on has not ended."""
        for file in (self.summary, self.policy, *self.centers.glob("*.safetensors")):
            with storage(file):
                file.unlink(missing_ok=True)

    def rename_made(self, latest: object, best: object) -> None:
        """Rename films and exported files of the latest and the best policy to hold these: new ones come."""
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
        """The path of what is made of a policy, such as ``policy.onnx``: the name says of which policy.

        Args:
            checkpoint: ``latest``, ``best`` or a generation.
            name: what is made of the latest policy, with its ending.
            best: the same of the best policy; of a generation's it is ``name`` with its number.
        """
        if self._packaged:
            return Path(f"{self.path.name}-{name}")  # in the working folder
        stem, dot, ending = name.partition(".")
        names = {"latest": name, "best": best}
        return self.path / names.get(checkpoint, f"{stem}-{checkpoint}{dot}{ending}")

    def read_summary(self) -> dict[str, Any]:
        """Read summary.json; empty if the run has not ended, or the file or a number in it is damaged."""
        try:
            found = json.loads(read_bytes(self.summary))
        except (InputError, ValueError):
            return {}
        return found if is_summary(found) else {}

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write summary.json."""
        write_bytes(self.summary, (json.dumps(finite(summary), indent=2, allow_nan=False) + "\n").encode())


def zoo_names() -> list[str]:
    """The names of the policies that come with the package, without the prefix, sorted."""
    return sorted(config.parent.name for config in ZOO.glob(f"*/{CONFIG}"))


def located(path: AnyPath) -> Path:
    """The path; of ``zoo:NAME`` that of the policy's folder.

    Raises:
        InputError: it is no path, or there is no policy of that name.
    """
    text = os.fspath(path)
    if not text.startswith(ZOO_PREFIX):
        return path_of(path)
    name = text.removeprefix(ZOO_PREFIX)
    if name not in zoo_names():
        close = nearest(text, (ZOO_PREFIX + known for known in zoo_names()))
        raise InputError(f"there is no policy {text}{close} ('escalade zoo' lists them)")
    return ZOO / name


def _taken(path: Path) -> InputError:
    resume = f"'escalade resume {quote(str(path))}'"
    return InputError(f"`run_dir` {path} holds a run already: go on with {resume} or name another")


def _similar(path: Path) -> str:
    """A folder beside ``path`` whose name is like it, in words; empty where there is none."""
    if not path.parent.is_dir():
        return ""
    return nearest(path.name, (other.name for other in path.parent.iterdir() if other.is_dir()))


def _held(path: Path) -> str:
    """The runs in a folder that is none itself, in words."""
    runs = _runs_in(path)
    if not runs:
        return f"it has no {CONFIG}"
    newest = max(runs, key=lambda run: (run / CONFIG).stat().st_mtime)
    return f"it holds {counted(len(runs), 'run')}, the newest is {newest}: name one of them"


def _runs_in(path: Path) -> list[Path]:
    """The run folders one or two levels below ``path``."""
    return [config.parent for config in (*path.glob(f"*/{CONFIG}"), *path.glob(f"*/*/{CONFIG}"))]


def _fresh(runs: Path, subject: str, label: str) -> Path:
    """A new folder under ``runs``, made at once: two runs that start together must not share one."""
    base = runs / subject.replace("/", "-") / f"{label}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in count(1):
        path = base if number == 1 else base.with_name(f"{base.name}-{number}")
        with storage(base), suppress(FileExistsError):
            path.mkdir(parents=True)
            break
    return path
