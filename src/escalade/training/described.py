"""Options of runs as labels, and folders that collect several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from escalade.config.options import OPTIONS
from escalade.support.registry import Entry
from escalade.training.sources import without_digest

_SHORT = 12  # maximum length of the label of a value that is not set


def shown(name: str, value: Any) -> str:
    """Return an option's value for a label or a table."""
    if value is None or value == ():
        unset = OPTIONS[name].metadata["unset"] if name in OPTIONS else "default"
        return unset if len(unset) <= _SHORT else "default"
    if name == "start_from":
        return without_digest(value)[0]  # without the digest, which is too long for a label
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def differing(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names whose values differ between the mappings, in order. A missing value is None."""
    names = dict.fromkeys(name for one in mappings for name in one)
    return [name for name in names if any(one.get(name) != mappings[0].get(name) for one in mappings)]


def ordered_text(value: Any) -> str:
    """Return ``repr(value)`` with sorted keys, so that it does not depend on their order."""
    if not isinstance(value, Mapping):
        return repr(value)
    return "{" + ", ".join(f"{key!r}: {ordered_text(each)}" for key, each in sorted(value.items())) + "}"


@dataclass(frozen=True)
class Collection:
    """A folder of runs, as shown in a report."""

    name: str
    runs: Path
    """The best trial's run, or folder of runs, which represents the collection."""
    facts: Mapping[str, str]
    """Number of trials, and their outcomes."""
    best: Mapping[str, str]
    """Options of the best trial."""
    pictures: Sequence[tuple[str, Path]]
    """Titles and PNG files."""


COLLECTIONS: Final[dict[str, Entry]] = {
    "sweep.toml": Entry("a sweep", "escalade.wings.many_runs.sweep:collection_of"),
}
"""Collections by a file that only their folders have. An entry loads a function of the folder."""


def find_collection(folder: Path) -> Collection | None:
    """Read the collection in ``folder``, or return None if ``folder`` is not one.

    Raises:
        InputError: The folder cannot be read, or it has no finished run.
    """
    for name, entry in COLLECTIONS.items():
        if (folder / name).is_file():
            found: Collection = entry.load()(folder)
            return found
    return None
