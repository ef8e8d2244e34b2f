"""The output of commands."""

from __future__ import annotations

import os
import sys

from escalade.support.interrupts import INTERRUPTED
from escalade.support.output import say

__all__ = ["INTERRUPTED", "give_up_stdout", "say"]


def give_up_stdout() -> None:
    """Send what is still in standard output's buffer nowhere: at exit it would fail once more."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
