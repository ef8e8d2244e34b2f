"""Checkpoints of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from escalade.errors import InputError
from escalade.storage.files import Unreadable, storage
from escalade.storage.tensors import Damaged, State, Stored, Tensors, read, write

T = TypeVar("T")

_NAME = re.compile(r"generation-([0-9]{6,})\.safetensors")

_COUNT = 2  # checkpoints besides snapshots


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """A checkpoint, and the problems of newer ones."""

    checkpoint: T
    problems: list[str] = field(default_factory=list)
    """One line for each newer checkpoint that is not usable, newest first."""


class Checkpoints:
    """Checkpoints of a run: the last two, and permanent snapshots."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        """Make the folder if it is missing. The run folder itself is not made again if it was removed."""
        self.folder.mkdir(exist_ok=True)

    def save(self, generation: int, tensors: Tensors, state: State, snapshot_every: int = 0) -> None:
        """Write the checkpoint after ``generation`` generations, and remove an old one.

        Raises:
            InputError: the folder cannot be written.
        """
        with storage(self.folder):
            self.make()
        again = generation in self.generations()
        write(self.path(generation), tensors, state)
        # Only the third newest. Older ones are snapshots, perhaps of an earlier `snapshot_every`, or remained
        # when a process was killed here.
        for older in [] if again else self.generations()[:-_COUNT][-1:]:
            if not (snapshot_every and older % snapshot_every == 0):
                self._remove(older)

    def load_latest(self, check: Callable[[Stored], T]) -> Loaded[T]:
        """Load the newest usable checkpoint.

        Args:
            check: converts the content of a file, and raises :class:`Damaged` if the content is not usable.
                Other exceptions are not caught.

        Raises:
            InputError: no checkpoint is usable, or a file that may be intact cannot be read.
        """
        problems: list[str] = []
        for generation in reversed(self.generations()):
            try:
                return Loaded(self.load(generation, check), problems)
            except (
                Unreadable
            ) as problem:  # it may be intact, and continuing from an older one would remove it
                raise InputError(
                    f"{problem}: try again when it is readable, or move it away to resume from the one before"
                ) from None
            except Damaged as problem:
                problems.append(str(problem))
        detail = f" ({problems[0]})" if problems else ""
        raise InputError(f"{self.folder} has no checkpoint to resume from{detail}")

    def load(self, generation: int, check: Callable[[Stored], T]) -> T:
        """Load the checkpoint after ``generation`` generations; ``check`` as in :meth:`load_latest`.

        Raises:
            InputError: it does not exist or is not usable.
        """
        path = self.path(generation)
        content = read(path)
        try:
            return check(content)
        except Damaged as problem:
            raise Damaged(f"{path} cannot be used: {problem}") from None

    def drop_after(self, generation: int) -> None:
        """Remove checkpoints later than ``generation``."""
        for later in self.generations():
            if later > generation:
                self._remove(later)

    def generations(self) -> list[int]:
        """Return the generations of all checkpoints, ascending.

        Raises:
            Unreadable: the folder exists, but cannot be read.
        """
        try:
            names = [file.name for file in self.folder.glob("*.safetensors")]
        except OSError as problem:
            raise Unreadable(f"{self.folder} cannot be read: {problem.strerror}") from None
        return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))

    def path(self, generation: int) -> Path:
        """Return the path of a generation's checkpoint."""
        return self.folder / f"generation-{generation:06d}.safetensors"

    def _remove(self, generation: int) -> None:
        path = self.path(generation)
        with storage(path):
            path.unlink(missing_ok=True)
