"""What a command prints."""

from __future__ import annotations

import os
import sys

from escalade.support.output import say

__all__ = ["give_up_stdout", "say"]


def give_up_stdout() -> None:
    """Send what is still in standard output's buffer nowhere: at exit it would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
