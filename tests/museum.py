"""Finished runs, each created once for all processes of a test session, for tests that only read them."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable
from pathlib import Path


class Museum:
    """Read-only folders by name. A test that changes one must copy it first."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: dict[str, dict[str, str]] = {}
        root.mkdir(exist_ok=True)

    def show(self, name: str, make: Callable[[Path], object]) -> Path:
        """Return the folder of this name, which ``make`` filled in this or a different process."""
        folder, label = self._root / name, self._root / f"{name}.json"
        with (self._root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not label.exists():
                assert not folder.exists(), f"{name} could not be created, in this or a different process"
                folder.mkdir()
                make(folder)
                label.write_text(json.dumps(_digests(folder)))
        self._seen[name] = json.loads(label.read_text())
        return folder

    def check(self) -> None:
        """Check that the folders shown to this process are unchanged."""
        for name, digests in self._seen.items():
            assert _digests(self._root / name) == digests, f"a test changed {name}: it must use a copy"


def _digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file by its path."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
