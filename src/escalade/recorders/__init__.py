"""The listeners of a run: the tables of its folder, the console, a plot in a notebook, trackers."""

from escalade.recorders.console import make_console
from escalade.recorders.goals import Goals, RunInfo
from escalade.recorders.progress import (
    PopulationFile,
    ProgressFile,
    columns_of,
    read_progress,
    read_rows,
    rewind,
)
from escalade.recorders.registry import Announcer, check_recorders, start_recorders
from escalade.recorders.row import COLUMNS, DETERMINISTIC, History, Recorder, Row, info_columns, of_returns
from escalade.recorders.tables import add_note, read_notes, read_table, rewind_notes, rewind_table
from escalade.recorders.workers import WorkersFile

__all__ = [
    "COLUMNS",
    "DETERMINISTIC",
    "Announcer",
    "Goals",
    "History",
    "PopulationFile",
    "ProgressFile",
    "Recorder",
    "Row",
    "RunInfo",
    "WorkersFile",
    "add_note",
    "check_recorders",
    "columns_of",
    "info_columns",
    "make_console",
    "of_returns",
    "read_notes",
    "read_progress",
    "read_rows",
    "read_table",
    "rewind",
    "rewind_notes",
    "rewind_table",
    "start_recorders",
]
