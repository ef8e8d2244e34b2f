"""What a command prints."""

from __future__ import annotations

import os
import sys

from escalade.support.output import printing

INTERRUPTED = 130
"""Exit code of a command that was interrupted, after what it did was saved."""


def say(text: str) -> None:
    """Print a line to standard output.

    Raises:
        EscaladeError: standard output is closed or full.
    """
    with printing():
        print(text, flush=True)


def give_up_stdout() -> None:
    """Send what is still in standard output's buffer nowhere: at exit it would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
