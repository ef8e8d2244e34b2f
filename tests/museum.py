"""Finished runs, each made once for all the processes of a test session, for tests that only look at one."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable
from pathlib import Path


class Museum:
    """Folders by name. Whoever wants to change one takes a copy: what is exhibited stays as it was made."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: dict[str, dict[str, str]] = {}
        root.mkdir(exist_ok=True)

    def show(self, name: str, make: Callable[[Path], object]) -> Path:
        """The folder of this name, which ``make`` has filled: in this process or in another."""
        folder, label = self._root / name, self._root / f"{name}.json"
        with (self._root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not label.exists():
                assert not folder.exists(), f"{name} could not be made, in this process or in another"
                folder.mkdir()
                make(folder)
                label.write_text(json.dumps(_digests(folder)))
        self._seen[name] = json.loads(label.read_text())
        return folder

    def check(self) -> None:
        """See that nobody has changed what this process was shown."""
        for name, digests in self._seen.items():
            assert _digests(self._root / name) == digests, f"a test has changed {name}: let it take a copy"


def _digests(folder: Path) -> dict[str, str]:
    """Of every file, by its path."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
