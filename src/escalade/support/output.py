"""Printing: to a place that may be full or gone, in the words of the command or of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from escalade.errors import EscaladeError

wording: ContextVar[Callable[[str], str]] = ContextVar("wording", default=str)
"""How notes name an argument: as they are, or as the command line's flags while one of its commands runs."""


class OutputFailure(EscaladeError, RuntimeError):
    """Standard output cannot be written."""


def say(text: str) -> None:
    """Print a line to standard output.

    Raises:
        OutputFailure: standard output is closed or full.
    """
    with printing():
        print(text, flush=True)  # noqa: T201 - what a command prints


@contextmanager
def printing() -> Iterator[None]:
    """Turn the operating system's error of a print into one line for the user.

    Raises:
        OutputFailure: standard output is full or gone.
        BrokenPipeError: who read it has ended, as ``head`` does.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise OutputFailure(
            f"standard output cannot be written ({problem.strerror}): send it elsewhere"
        ) from None
