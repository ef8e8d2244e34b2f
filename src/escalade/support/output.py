"""Lines to a place that may be full or gone, in words of the command or the library; what notebooks show."""

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


def shown(value: Any) -> str:
    """A value in a short form, a dash for None."""
    return plain(value) if isinstance(value, float | None) else f"{value}"


def table(title: str, facts: Mapping[str, Any]) -> str:
    """A small HTML table, with a line for every fact."""
    import html

    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{rows}</tbody></table>"


def data_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """The columns as a ``pandas.DataFrame``.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise InputError("to_pandas needs pandas: pip install pandas") from None
    return pandas.DataFrame(dict(columns))
