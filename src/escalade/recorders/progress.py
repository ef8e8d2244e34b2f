"""progress.csv: one row a generation, readable while the run goes on."""

from __future__ import annotations

import csv
import io
import math
from contextlib import suppress
from dataclasses import astuple, fields
from pathlib import Path

from escalade.errors import InputError
from escalade.recorders.row import COLUMNS, Row
from escalade.storage.files import read_bytes, storage, write_bytes


class ProgressFile:
    """Appends rows; numbers are written so that they read back as they were."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with storage(path):
            self._file = path.open("a", newline="", encoding="utf-8")
            try:
                if self._file.tell() == 0:
                    csv.writer(self._file).writerow(COLUMNS)
                    self._file.flush()
            except OSError:
                self.close()
                raise

    def generation(self, row: Row) -> None:
        with storage(self._path):
            csv.writer(self._file).writerow(["" if value is None else value for value in astuple(row)])
            self._file.flush()

    def note(self, text: str) -> None:
        """A table has no place for notes."""

    def close(self) -> None:
        with suppress(OSError):  # rows are flushed one by one: what is left could not be written
            self._file.close()


def rewind(path: Path, generations: int) -> int:
    """Drop rows after the first ``generations``: a resumed run writes them again. How many there were."""
    if not path.exists():
        return 0
    lines = read_bytes(path).decode(errors="replace").splitlines()
    kept = [line for line in lines[1:] if _generation(line) <= generations]
    text = io.StringIO()
    text.write("\n".join([",".join(COLUMNS), *kept]) + "\n")
    write_bytes(path, text.getvalue().encode())
    return sum(generations < _generation(line) < float("inf") for line in lines[1:])


def read_progress(path: Path) -> dict[str, list[float]]:
    """Columns of a progress.csv; empty cells become NaN.

    Raises:
        InputError: there is none, or it is not one.
    """
    if not path.exists():
        raise InputError(f"{path.parent} has no progress.csv: it is not a run folder")
    return _columns(read_bytes(path).decode(errors="replace"), path)


def _columns(text: str, path: Path) -> dict[str, list[float]]:
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        return {name: [float(row[name] or "nan") for row in rows] for name in COLUMNS}
    except (KeyError, ValueError, TypeError, csv.Error):
        raise InputError(f"{path} is not a progress.csv that Escalade wrote") from None


def read_rows(path: Path) -> list[Row]:
    """Rows of a progress.csv, as they were recorded.

    Raises:
        InputError: there is none, or it is not one.
    """
    return _listed(read_progress(path))


def _rows(text: str, path: Path) -> list[Row]:
    return _listed(_columns(text, path))


def _listed(columns: dict[str, list[float]]) -> list[Row]:
    return [_row(dict(zip(columns, numbers, strict=True))) for numbers in zip(*columns.values(), strict=True)]


class ProgressTail:
    """Reads the rows of a progress.csv as another process appends them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0  # the last generation that was given
        self._state: tuple[int, int] = (0, 0)

    def rows(self) -> list[Row]:
        """The rows since the last call, of which the first gives all; none while there is no file.

        Where the run was resumed and has begun some of its generations again, those come again.

        Raises:
            InputError: it is not a progress.csv.
        """
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return []
        if self._state == (found.st_ino, found.st_size):
            return []
        self._state = found.st_ino, found.st_size
        text, end, _ = read_bytes(self._path).decode(errors="replace").rpartition("\n")
        rows = _rows(text + end, self._path)
        self._seen = min(self._seen, rows[-1].generation if rows else 0)
        fresh = [row for row in rows if row.generation > self._seen]
        self._seen = rows[-1].generation if rows else 0
        return fresh


def _row(numbers: dict[str, float]) -> Row:
    values: dict[str, float | None] = {}
    for column in fields(Row):
        value, kind = numbers[column.name], str(column.type)
        missing = "None" in kind and math.isnan(value)
        values[column.name] = None if missing else int(value) if kind.startswith("int") else value
    return Row(**values)  # type: ignore[arg-type]


def _generation(line: str) -> float:
    """The generation that a line is of; infinite where a kill cut it short: it counts as not written."""
    first = line.split(",", 1)[0]
    # isdigit alone takes superscripts too, which int does not; a generation has no more than 18 digits.
    whole = first.isascii() and first.isdigit() and len(first) <= 18
    return int(first) if whole and line.count(",") == len(COLUMNS) - 1 else float("inf")
