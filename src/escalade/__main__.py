"""``python -m escalade``."""

from escalade.cli import run

run()
