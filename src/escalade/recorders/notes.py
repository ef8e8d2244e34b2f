"""notes.csv: what a run said to the person who watched it."""

from __future__ import annotations

from pathlib import Path

from escalade.recorders.tables import TableFile, read_table
from escalade.storage.files import read_bytes, write_bytes

COLUMNS = ("generation", "note")


def add_note(path: Path, generation: int, text: str) -> None:
    """Append a note to the table, which is made where there is none; ``generation`` is the last recorded.

    Raises:
        StorageFailure: the disk is full.
    """
    table = TableFile(path, COLUMNS)
    try:
        table.write([[generation, " ".join(text.splitlines())]])
    finally:
        table.close()


def rewind_notes(path: Path, count: int) -> None:
    """Keep the first ``count`` notes: a resumed run says again what came later."""
    if not path.exists():
        return
    lines = read_bytes(path).decode(errors="replace").splitlines(keepends=True)
    write_bytes(path, "".join(lines[: 1 + count]).encode())


def read_notes(path: Path) -> list[str]:
    """The notes in their order; none where there is no table.

    Raises:
        InputError: it is not one.
    """
    return read_table(path).get("note", []) if path.exists() else []
