"""CSV tables of a run folder: readable during the run, and truncated on resume."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from escalade.errors import InputError, StorageFailure
from escalade.storage.files import read_bytes, storage, write_bytes

_NOTES = ("generation", "note")  # the columns of notes.csv


class TableFile:
    """A table whose first column is the generation.

    Reading returns exactly the written numbers.

    Raises:
        InputError: the path cannot be written.
        StorageFailure: the disk is full.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._path = path
        with storage(path):
            self._file = path.open("a", newline="", encoding="utf-8")
        try:
            if self._file.tell() == 0:
                self.write([columns])
        except StorageFailure:
            self.close()
            raise

    def write(self, rows: Iterable[Iterable[object]]) -> None:
        """Append rows. None becomes an empty cell."""
        with storage(self._path):
            rows_of = csv.writer(self._file, lineterminator="\n")
            rows_of.writerows(["" if cell is None else cell for cell in row] for row in rows)
            self._file.flush()

    def note(self, text: str) -> None:
        """Do nothing: tables have no notes."""

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # rows are flushed one by one, so only rows that could not be written remain
            self._file.close()


def rewind_table(path: Path, columns: Sequence[str], generations: int) -> int:
    """Drop rows after the first ``generations``, which a resumed run writes again.

    Returns:
        The number of dropped rows.
    """
    if not path.exists():
        return 0
    text, dropped = rows_until(path, columns, generations)
    write_bytes(path, text.encode())
    return dropped


def rows_until(path: Path, columns: Sequence[str], generations: int) -> tuple[str, int]:
    """Return the text of a table up to generation ``generations``, and the number of later rows."""
    lines = read_bytes(path).decode(errors="replace").splitlines()
    found = [(line, _generation(line, len(columns))) for line in lines[1:]]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(columns)
    text.writelines(f"{line}\n" for line, generation in found if generation <= generations)
    return text.getvalue(), sum(generations < generation < float("inf") for _, generation in found)


def read_table(path: Path) -> dict[str, list[str]]:
    """Return the columns of a table as text, in order.

    An incomplete last line is ignored.

    Raises:
        InputError: the file is missing, or not a table.
    """
    try:
        return columns_in(whole_lines(read_bytes(path)).decode())
    except (ValueError, csv.Error):
        raise InputError(f"{path} is not a table of Escalade: correct it or move it away") from None


def columns_in(text: str) -> dict[str, list[str]]:
    """Return the columns of a table's text. Rows whose length differs from the heading are ignored."""
    heading, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    whole = [row for row in rows if len(row) == len(heading)]
    return {name: [row[place] for row in whole] for place, name in enumerate(heading)}


def whole_lines(data: bytes) -> bytes:
    """Return the lines of a file without an incomplete last line."""
    return data[: data.rfind(b"\n") + 1]


def _generation(line: str, columns: int) -> float:
    """Return the generation of a line, or infinity if the line is incomplete, as after a kill."""
    first = re.match("([0-9]{1,18}),", line)
    return int(first[1]) if first and line.count(",") == columns - 1 else float("inf")


def add_note(path: Path, generation: int, text: str) -> None:
    """Append a note to the table, and create the table if needed; ``generation`` is the last recorded one.

    Raises:
        StorageFailure: the disk is full.
    """
    table = TableFile(path, _NOTES)
    try:
        table.write([[generation, " ".join(text.splitlines())]])
    finally:
        table.close()


def rewind_notes(path: Path, count: int) -> None:
    """Drop notes after the first ``count``, which a resumed run writes again."""
    if not path.exists():
        return
    lines = read_bytes(path).decode(errors="replace").splitlines(keepends=True)
    write_bytes(path, "".join(lines[: 1 + count]).encode())


def read_notes(path: Path) -> list[str]:
    """Return the notes in order.

    Empty if the file is missing.

    Raises:
        InputError: the file is not a table.
    """
    return read_table(path).get("note", []) if path.exists() else []
