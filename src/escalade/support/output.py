"""Printing to streams that may be full or closed, the wording of notes, and tables for notebooks."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from escalade.errors import EscaladeError, InputError
from escalade.support.numbers import plain

wording: ContextVar[Callable[[str], str]] = ContextVar("wording", default=str)
"""Function that rewrites arguments in notes: names stay in Python, and become flags in a command."""


# All control characters but tab and newline, and those that change the direction of writing.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class OutputFailure(EscaladeError, RuntimeError):
    """Standard output cannot be written."""


class ReaderGone(BrokenPipeError):
    """The reader of standard output is gone. A broken pipe in the user's code is a plain BrokenPipeError."""


def print_line(text: str) -> None:
    """Print a line to standard output.

    Raises:
        OutputFailure: standard output is closed or full.
    """
    write_line(text, sys.stdout)


def write_line(text: str, stream: TextIO) -> None:
    """Write a line to a stream, with ``?`` for characters that its encoding lacks.

    Raises:
        OutputFailure: the stream is closed or full.
    """
    text = visible(text)
    with printing():
        try:
            print(text, file=stream, flush=True)
        except UnicodeEncodeError:
            print(text.encode(stream.encoding, "replace").decode(stream.encoding), file=stream, flush=True)


def visible(text: str) -> str:
    """Escape control characters as in a Python string.

    Names, options and exceptions of environments may contain some, which would move a terminal's cursor, hide
    lines or change its title.
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@contextmanager
def printing() -> Iterator[None]:
    """Turn the operating system's errors of a print into one line for the user.

    Raises:
        OutputFailure: standard output is full or closed.
        ReaderGone: the reader has ended, as ``head`` does, or the terminal was closed.
    """
    try:
        yield
    except BrokenPipeError as problem:
        raise ReaderGone(*problem.args) from None
    except OSError as problem:
        if problem.errno == errno.EIO:  # the terminal was closed
            raise ReaderGone(*problem.args) from None
        raise OutputFailure(f"standard output cannot be written ({problem.strerror}); redirect it") from None


def shown(value: Any) -> str:
    """Format a value in a short form, with a dash for None."""
    return plain(value) if isinstance(value, float | None) else f"{value}"


def table(title: str, facts: Mapping[str, Any]) -> str:
    """Return a small HTML table with one row per fact."""
    import html

    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{rows}</tbody></table>"


def data_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return the columns as a ``pandas.DataFrame``.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise InputError("to_pandas needs pandas; pip install pandas") from None
    return pandas.DataFrame(dict(columns))
