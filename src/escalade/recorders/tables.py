"""Tables of a run folder: rows by generation, readable while the run goes on, cut back on resume."""

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
    """A recorder's table: rows whose first column is a generation; numbers read back as they were.

    Raises:
        InputError: the path is wrong.
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
        """Append rows; None is an empty cell."""
        with storage(self._path):
            rows_of = csv.writer(self._file, lineterminator="\n")
            rows_of.writerows(["" if cell is None else cell for cell in row] for row in rows)
            self._file.flush()

    def note(self, text: str) -> None:
        """A table has no place for notes."""

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # rows are flushed one by one: what is left could not be written
            self._file.close()


def rewind_table(path: Path, columns: Sequence[str], generations: int) -> int:
    """Drop rows after the first ``generations``: a resumed run writes them again. How many there were."""
    if not path.exists():
        return 0
    text, dropped = kept_rows(path, columns, generations)
    write_bytes(path, text.encode())
    return dropped


def kept_rows(path: Path, columns: Sequence[str], generations: int) -> tuple[str, int]:
    """The text of a table with its rows of the first ``generations`` alone, and the number of later ones."""
    lines = read_bytes(path).decode(errors="replace").splitlines()
    found = [(line, _generation(line, len(columns))) for line in lines[1:]]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(columns)
    text.writelines(f"{line}\n" for line, generation in found if generation <= generations)
    return text.getvalue(), sum(generations < generation < float("inf") for _, generation in found)


def read_table(path: Path) -> dict[str, list[str]]:
    """The columns of a table as text, in their order. A last line that a kill cut short is left out.

    Raises:
        InputError: it is not there, or no table.
    """
    try:
        return columns_in(whole_lines(read_bytes(path)).decode())
    except (ValueError, csv.Error):
        raise InputError(f"{path} is not a table that Escalade wrote") from None


def columns_in(text: str) -> dict[str, list[str]]:
    """The columns of a table's text; rows of a different length than its heading are left out."""
    heading, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    whole = [row for row in rows if len(row) == len(heading)]
    return {name: [row[place] for row in whole] for place, name in enumerate(heading)}


def whole_lines(data: bytes) -> bytes:
    """The lines of a table's file, without a last one that was cut short."""
    return data[: data.rfind(b"\n") + 1]


def _generation(line: str, columns: int) -> float:
    """The generation that a line is of; infinite where a kill cut it short: it counts as not written."""
    first = re.match("([0-9]{1,18}),", line)
    return int(first[1]) if first and line.count(",") == columns - 1 else float("inf")


def add_note(path: Path, generation: int, text: str) -> None:
    """Append a note to the table, which is made where there is none; ``generation`` is the last recorded.

    Raises:
        StorageFailure: the disk is full.
    """
    table = TableFile(path, _NOTES)
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
