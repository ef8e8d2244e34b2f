"""What a run leaves for people: a table, a live console, curves and videos."""

from escalade.recorders.cluster import ClusterFile
from escalade.recorders.console import Goals, make_console
from escalade.recorders.progress import ProgressFile, read_progress, read_rows, rewind
from escalade.recorders.registry import RECORDERS, Recorded, start_recorder
from escalade.recorders.row import COLUMNS, Recorder, Row

__all__ = [
    "COLUMNS",
    "RECORDERS",
    "ClusterFile",
    "Goals",
    "ProgressFile",
    "Recorded",
    "Recorder",
    "Row",
    "make_console",
    "read_progress",
    "read_rows",
    "rewind",
    "start_recorder",
]
