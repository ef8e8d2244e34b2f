"""The listeners of a run: the tables of its folder, the console, a plot in a notebook, trackers."""

from escalade.recorders.cluster import ClusterFile
from escalade.recorders.console import make_console
from escalade.recorders.goals import Goals
from escalade.recorders.history import History
from escalade.recorders.notes import add_note, read_notes, rewind_notes
from escalade.recorders.population import PopulationFile, of_returns, quantiles
from escalade.recorders.progress import (
    ProgressFile,
    columns_of,
    read_progress,
    read_rows,
    rewind,
)
from escalade.recorders.registry import (
    RECORDERS,
    Announcer,
    check_recorders,
    start_recorder,
    start_recorders,
)
from escalade.recorders.row import COLUMNS, DETERMINISTIC, LEVELS, Recorder, Row, info_columns
from escalade.recorders.run_info import RunInfo
from escalade.recorders.tables import read_table, rewind_table
from escalade.recorders.tracking import TRACKERS
from escalade.recorders.workers import WorkersFile

__all__ = [
    "COLUMNS",
    "DETERMINISTIC",
    "LEVELS",
    "RECORDERS",
    "TRACKERS",
    "Announcer",
    "ClusterFile",
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
    "quantiles",
    "read_notes",
    "read_progress",
    "read_rows",
    "read_table",
    "rewind",
    "rewind_notes",
    "rewind_table",
    "start_recorder",
    "start_recorders",
]
