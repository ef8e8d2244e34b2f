"""Folders that stand for runs they hold, and say something of their own: a sweep's, for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from escalade.support.registry import Entry


@dataclass(frozen=True)
class Collection:
    """A folder with runs in it, as a report shows it."""

    name: str
    runs: Path
    """The run, or the folder of runs, that stands for all of them: the best trial's."""
    facts: Mapping[str, str]
    """The number of trials, and how they ended."""
    best: Mapping[str, str]
    """The options of the best trial."""
    pictures: Sequence[tuple[str, Path]]
    """Titles and png files."""


COLLECTIONS: Final[dict[str, Entry]] = {
    "sweep.toml": Entry("a sweep", "escalade.wings.many_runs.sweep:collection_of"),
}
"""Keys are files that only such folders have; homes are functions from a folder to a :class:`Collection`."""


def find_collection(folder: Path) -> Collection | None:
    """Read the collection in ``folder``; None if it is not one.

    Raises:
        InputError: it cannot be read, or none of its runs has ended.
    """
    for name, entry in COLLECTIONS.items():
        if (folder / name).is_file():
            found: Collection = entry.load()(folder)
            return found
    return None
