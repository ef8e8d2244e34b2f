"""The checkpoints of a run."""

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

_KEPT = 2


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """A checkpoint, and what was wrong with newer ones."""

    checkpoint: T
    problems: list[str] = field(default_factory=list)
    """One line for each newer checkpoint that could not be used, newest first."""


class Checkpoints:
    """The checkpoints of a run: the last two, and those that are kept for good."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        """Make the folder if it is missing; the run's own must be there: one that was removed stays so."""
        self.folder.mkdir(exist_ok=True)

    def save(self, generation: int, tensors: Tensors, state: State, snapshot_every: int = 0) -> None:
        """Write the checkpoint after ``generation`` generations; drop those no longer needed.

        Raises:
            InputError: the folder cannot be written.
        """
        with storage(self.folder):
            self.make()
        again = generation in self.generations()
        write(self.path(generation), tensors, state)
        # Only the third newest: older ones were kept for good, under an earlier `snapshot_every` too, or were
        # left where a process was killed at this place.
        for older in [] if again else self.generations()[:-_KEPT][-1:]:
            if not (snapshot_every and older % snapshot_every == 0):
                self._remove(older)

    def load_latest(self, check: Callable[[Stored], T]) -> Loaded[T]:
        """The newest checkpoint that can be used.

        Args:
            check: makes of a file's content what the caller needs, and raises :class:`Damaged` for one that
                is whole but cannot be used. Whatever else it raises goes to the caller.

        Raises:
            InputError: none is left, or a file that may be whole cannot be read.
        """
        problems: list[str] = []
        for generation in reversed(self.generations()):
            try:
                return Loaded(self.load(generation, check), problems)
            except Unreadable as problem:  # it may be well: what comes next would drop it
                raise InputError(
                    f"{problem}: try again once it can be, or move it away to go on from the one before"
                ) from None
            except Damaged as problem:
                problems.append(str(problem))
        detail = f" ({problems[0]})" if problems else ""
        raise InputError(f"{self.folder} holds no checkpoint to go on from{detail}")

    def load(self, generation: int, check: Callable[[Stored], T]) -> T:
        """The checkpoint after ``generation`` generations; ``check`` as in :meth:`load_latest`.

        Raises:
            InputError: there is none, or it cannot be used.
        """
        path = self.path(generation)
        content = read(path)
        try:
            return check(content)
        except Damaged as problem:
            raise Damaged(f"{path} cannot be used: {problem}") from None

    def drop_after(self, generation: int) -> None:
        """Forget checkpoints later than ``generation``."""
        for later in self.generations():
            if later > generation:
                self._remove(later)

    def generations(self) -> list[int]:
        """Generations there are checkpoints of, ascending.

        Raises:
            Unreadable: the folder is there, and cannot be read.
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
