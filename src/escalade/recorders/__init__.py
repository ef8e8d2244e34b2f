"""What listens to a run: progress.csv, the console, and a plot in a notebook."""

from escalade.recorders.cluster import ClusterFile
from escalade.recorders.console import make_console
from escalade.recorders.goals import Goals
from escalade.recorders.history import History
from escalade.recorders.progress import ProgressFile, read_progress, read_rows, rewind
from escalade.recorders.registry import RECORDERS, Recorded, check_recorders, start_recorder, start_recorders
from escalade.recorders.row import COLUMNS, Recorder, Row

__all__ = [
    "COLUMNS",
    "RECORDERS",
    "ClusterFile",
    "Goals",
    "History",
    "ProgressFile",
    "Recorded",
    "Recorder",
    "Row",
    "check_recorders",
    "make_console",
    "read_progress",
    "read_rows",
    "rewind",
    "start_recorder",
    "start_recorders",
]
