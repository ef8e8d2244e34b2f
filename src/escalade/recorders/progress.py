"""progress.csv and population.csv: one row per generation, readable during the run."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from escalade.errors import InputError
from escalade.recorders.goals import RunInfo
from escalade.recorders.row import COLUMNS, QUANTILES, Row
from escalade.recorders.tables import TableFile, columns_in, rows_until, whole_lines
from escalade.storage.files import read_bytes, write_bytes
from escalade.storage.run_folder import RunFolder

_MOST = 10**12  # maximum of counts and times
_KINDS = {column.name: str(column.type) for column in fields(Row)}
_BOUNDED = ["seconds", *(name for name, kind in _KINDS.items() if kind.startswith("int"))]


class ProgressFile(TableFile):
    """Appends rows to progress.csv. The columns of :attr:`Row.info` are last."""

    def __init__(self, run: RunInfo) -> None:
        super().__init__(run.files.progress, (*COLUMNS, *run.info))

    def generation(self, row: Row) -> None:
        self.write([row.columns().values()])


class PopulationFile(TableFile):
    """Appends the quantiles of each generation's returns to population.csv."""

    COLUMNS = ("generation", *QUANTILES)

    def __init__(self, run: RunInfo) -> None:
        super().__init__(run.files.population, self.COLUMNS)

    def generation(self, row: Row) -> None:
        self.write([(row.generation, *row.quantiles)])


def rewind(path: Path, generations: int, info: Sequence[str] = ()) -> int:
    """Drop rows after the first ``generations``, which a resumed run writes again.

    Returns:
        The number of dropped rows.

    Raises:
        InputError: a remaining row has a cell that is not a number; the file is not changed.
    """
    if not path.exists():
        return 0
    text, dropped = rows_until(path, (*COLUMNS, *info), generations)
    _columns(text, path)  # raises if a cell is invalid
    write_bytes(path, text.encode())
    return dropped


def read_progress(path: Path) -> dict[str, list[float]]:
    """Return the columns of a progress.csv, those of ``info`` last.

    Empty cells become NaN. An incomplete last line is ignored.

    Raises:
        InputError: the file is missing, or not a progress.csv.
    """
    if not path.exists():
        raise InputError(
            f"{path.parent} has no progress.csv: it is not a run folder, or only contains a policy"
        )
    return _columns(whole_lines(read_bytes(path)).decode(errors="replace"), path)


def columns_of(folder: RunFolder) -> dict[str, list[float]]:
    """Return the columns of a run's progress.csv as :func:`read_progress`.

    Empty if the run is just starting.

    Raises:
        InputError: the file is not a progress.csv, or missing beside a policy.
    """
    if folder.config.exists() and not (folder.progress.exists() or folder.policy.exists()):
        return {name: [] for name in COLUMNS}
    return read_progress(folder.progress)


def _columns(text: str, path: Path) -> dict[str, list[float]]:
    try:
        table = columns_in(text)
        names = dict.fromkeys([*COLUMNS, *table])
        found = {name: [float(cell or "nan") for cell in table[name]] for name in names}
        bounded = [(value, "None" in _KINDS[name]) for name in _BOUNDED for value in found[name]]
        if not all(0 <= value <= _MOST or (lacks and math.isnan(value)) for value, lacks in bounded):
            raise ValueError("invalid count or time")
        return found
    except (KeyError, ValueError, csv.Error):
        raise InputError(f"{path} is not a progress.csv of Escalade: correct it or move it away") from None


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a progress.csv.

    Raises:
        InputError: the file is missing, or not a progress.csv.
    """
    columns = read_progress(path)
    return [_row(dict(zip(columns, numbers, strict=True))) for numbers in zip(*columns.values(), strict=True)]


def _row(numbers: dict[str, float]) -> Row:
    values: dict[str, float | None] = {}
    for name in COLUMNS:
        value, kind = numbers[name], _KINDS[name]
        missing = "None" in kind and math.isnan(value)
        values[name] = None if missing else int(value) if kind.startswith("int") else value
    others = [(name, value) for name, value in numbers.items() if name not in COLUMNS]
    info = tuple((name, None if math.isnan(value) else value) for name, value in others)
    return Row(**values, info=info)  # type: ignore[arg-type]
