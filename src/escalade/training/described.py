"""Options of several runs in words, and folders that stand for the runs in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from escalade.config.options import OPTIONS
from escalade.support.registry import Entry
from escalade.training.sources import without_digest

_SHORT = 12  # letters, at most, of the words for a value that is not set


def shown(name: str, value: Any) -> str:
    """An option's value as a label or a table shows it."""
    if value is None or value == ():
        unset = OPTIONS[name].metadata["unset"] if name in OPTIONS else "default"
        return unset if len(unset) <= _SHORT else "default"
    if name == "start_from":
        return without_digest(value)[0]  # the path is its name; nobody reads the digest
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def differing(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names whose value is not the same in all of these, in their order; a missing one is None."""
    names = dict.fromkeys(name for one in mappings for name in one)
    return [name for name in names if any(one.get(name) != mappings[0].get(name) for one in mappings)]


def ordered_text(value: Any) -> str:
    """A text that tells values apart, and not the orders of their keys: ``repr`` with keys sorted."""
    if not isinstance(value, Mapping):
        return repr(value)
    return "{" + ", ".join(f"{key!r}: {ordered_text(each)}" for key, each in sorted(value.items())) + "}"


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
