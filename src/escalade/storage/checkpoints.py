"""The checkpoints of a run."""

from __future__ import annotations

import re
from pathlib import Path

from escalade.errors import InputError
from escalade.storage.files import storage
from escalade.storage.tensors import State, Tensors, read, write

_NAME = re.compile(r"^generation-(\d+)\.safetensors$")

_KEPT = 2


class Checkpoints:
    """The checkpoints of a run: the last two, and those that are kept for good."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, generation: int, tensors: Tensors, state: State, snapshot_every: int = 0) -> None:
        """Write the checkpoint after ``generation`` generations; drop those no longer needed."""
        with storage(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write(self.path(generation), tensors, state)
        for older in self.generations()[:-_KEPT]:
            if not (snapshot_every and older % snapshot_every == 0):
                self.path(older).unlink(missing_ok=True)

    def load_latest(self) -> tuple[Tensors, State, list[str]]:
        """The newest checkpoint that is whole, and what was wrong with newer ones.

        Raises:
            InputError: none is left.
        """
        problems: list[str] = []
        for generation in reversed(self.generations()):
            try:
                return *read(self.path(generation)), problems
            except InputError as problem:
                problems.append(str(problem))
        detail = f" ({problems[0]})" if problems else ""
        raise InputError(f"{self.folder} holds no checkpoint to go on from{detail}")

    def drop_after(self, generation: int) -> None:
        """Forget checkpoints later than ``generation``."""
        for later in self.generations():
            if later > generation:
                self.path(later).unlink(missing_ok=True)

    def generations(self) -> list[int]:
        """Generations there are checkpoints of, ascending."""
        names = (_NAME.match(file.name) for file in self.folder.glob("*.safetensors"))
        return sorted(int(name[1]) for name in names if name)

    def path(self, generation: int) -> Path:
        """Where a generation's checkpoint is."""
        return self.folder / f"generation-{generation:06d}.safetensors"
