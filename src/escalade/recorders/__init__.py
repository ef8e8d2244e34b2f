"""Recorders of a run: tables in its folder, the console, a plot in a notebook, and trackers."""

from escalade.recorders.console import make_console as make_console
from escalade.recorders.goals import Goals as Goals
from escalade.recorders.goals import RunInfo as RunInfo
from escalade.recorders.progress import PopulationFile as PopulationFile
from escalade.recorders.progress import ProgressFile as ProgressFile
from escalade.recorders.progress import columns_of as columns_of
from escalade.recorders.progress import read_progress as read_progress
from escalade.recorders.progress import read_rows as read_rows
from escalade.recorders.progress import rewind as rewind
from escalade.recorders.registry import Announcer as Announcer
from escalade.recorders.registry import check_recorders as check_recorders
from escalade.recorders.registry import start_recorders as start_recorders
from escalade.recorders.row import COLUMNS as COLUMNS
from escalade.recorders.row import DETERMINISTIC as DETERMINISTIC
from escalade.recorders.row import History as History
from escalade.recorders.row import Recorder as Recorder
from escalade.recorders.row import Row as Row
from escalade.recorders.row import info_columns as info_columns
from escalade.recorders.row import of_returns as of_returns
from escalade.recorders.tables import add_note as add_note
from escalade.recorders.tables import read_notes as read_notes
from escalade.recorders.tables import read_table as read_table
from escalade.recorders.tables import rewind_notes as rewind_notes
from escalade.recorders.tables import rewind_table as rewind_table
from escalade.recorders.workers import WorkersFile as WorkersFile
