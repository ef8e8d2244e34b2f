"""Printing: to a place that may be full or gone, in the words of the command or of the library."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

from escalade.errors import EscaladeError

wording: ContextVar[Callable[[str], str]] = ContextVar("wording", default=str)
"""The words for an argument in notes: its name, or the command line's flag while a command runs."""


# All but the tab and the end of a line; and what turns the direction of writing.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class OutputFailure(EscaladeError, RuntimeError):
    """Standard output cannot be written."""


class ReaderGone(BrokenPipeError):
    """Standard output's reader has gone away; a broken pipe of the user's code is a plain BrokenPipeError."""


def say(text: str) -> None:
    """Print a line to standard output.

    Raises:
        OutputFailure: standard output is closed or full.
    """
    write_line(text, sys.stdout)


def write_line(text: str, stream: TextIO) -> None:
    """Write a line to a stream; ``?`` for letters that its encoding does not have.

    Raises:
        OutputFailure: it is closed or full.
    """
    text = visible(text)
    with printing():
        try:
            print(text, file=stream, flush=True)
        except UnicodeEncodeError:
            print(text.encode(stream.encoding, "replace").decode(stream.encoding), file=stream, flush=True)


def visible(text: str) -> str:
    """The text with control characters spelled out, as Python writes them in a string.

    Names, options and what an environment raises may hold some: raw, they move a terminal's cursor, hide
    lines or write its title.
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@contextmanager
def printing() -> Iterator[None]:
    """Turn the operating system's error of a print into one line for the user.

    Raises:
        OutputFailure: standard output is full or gone.
        ReaderGone: who read it has ended, as ``head`` does, or the terminal was closed.
    """
    try:
        yield
    except BrokenPipeError as problem:
        raise ReaderGone(*problem.args) from None
    except OSError as problem:
        if problem.errno == errno.EIO:  # of a terminal that was closed
            raise ReaderGone(*problem.args) from None
        raise OutputFailure(
            f"standard output cannot be written ({problem.strerror}): send it elsewhere"
        ) from None
