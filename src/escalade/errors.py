"""The errors that Escalade raises: one class for the user's mistakes, three for what fails around it."""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_LONGEST = 4000  # characters of a message: what others raise may hold megabytes
_SHORT = 200  # of an exception where there may be one for each member
_LIBRARIES = (os.path.dirname(os.__file__), os.path.dirname(__file__))  # Python's and ours


class EscaladeError(Exception):
    """Base of everything Escalade raises on purpose; its message is one line.

    Arguments and options stand in backticks in it, as `population` or `workers=0`. The command line
    writes them as its flags, ``--population`` and ``--workers 0``, where the command has them.
    ``exit_code`` is what the command line exits with.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(shortened(" ".join(message.split())))


class InputError(EscaladeError, ValueError):
    """The user's input is wrong: the message names the input and what to do about it."""

    exit_code = 2


class Diverged(InputError):
    """A search distribution left the range of numbers that can be computed with."""


class EnvironmentFailure(EscaladeError, RuntimeError):
    """The environment (or the user's fitness function) raised; the message says how to reproduce it."""


class EngineFailure(EscaladeError, RuntimeError):
    """Work could not be done: workers keep dying."""


class StorageFailure(EscaladeError, RuntimeError):
    """The run folder cannot be written: the disk is full or went away."""


Catch = bool | type[Exception] | tuple[type[Exception], ...]
"""Exceptions of the user's function that count as the worst of their generation: True for all, or types."""


def caught(catch: Catch) -> tuple[type[BaseException], ...]:
    """Return ``catch`` as types of exceptions.

    Raises:
        InputError: it holds something else.
    """
    if isinstance(catch, bool):
        return (Exception, SystemExit) if catch else ()
    types = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(one, type) and issubclass(one, Exception) for one in types):
        raise InputError(
            f"catch {catch!r} must be True, or types of exceptions such as (ValueError, OSError)"
        )
    return types


@contextmanager
def about(subject: str, kind: type[InputError] = InputError) -> Iterator[None]:
    """Have an InputError begin with ``subject`` and a colon, and be a ``kind``; an empty one is left out."""
    try:
        yield
    except InputError as problem:
        raise kind(f"{subject}: {problem}" if subject else str(problem)) from None


def one_line(problem: BaseException) -> str:
    """An exception in one line: ``TypeError: its message``."""
    return " ".join(f"{type(problem).__name__}: {text_of(problem)}".split())


def text_of(problem: BaseException) -> str:
    """Return an exception's message; Python's own words if its ``__str__`` raises."""
    try:
        return str(problem)
    except Exception:  # noqa: BLE001 - of the user's class, while its error is being reported
        return "<exception str() failed>"


def with_place(problem: BaseException) -> str:
    """An exception in one line, with where it was raised: ``TypeError: its message (line N of FILE)``."""
    return f"{one_line(problem)} ({place_of(problem)})"


def in_words(problem: BaseException) -> str:
    """The same with a short message, for what may be raised in each member."""
    said = one_line(problem)
    return f"{said if len(said) <= _SHORT else f'{said[:_SHORT]}...'} ({place_of(problem)})"


def place_of(problem: BaseException) -> str:
    """The place where an exception was raised: ``line N of FILE``, the innermost that is no library's."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = next((frame for frame in reversed(frames) if _is_users(frame.filename)), frames[-1])
    return f"line {where.lineno} of {os.path.basename(where.filename)}"


def _is_users(file: str) -> bool:
    """Return whether the file is the user's: not of Python, of an installed package, or of Escalade."""
    installed = "site-packages" in file or "dist-packages" in file
    return not installed and not file.startswith((*_LIBRARIES, "<"))


def shortened(message: str) -> str:
    """The message, cut in its middle where it is very long: its end tells the mend."""
    if len(message) <= _LONGEST:
        return message
    ends = _LONGEST // 2
    return f"{message[:ends]} [... {len(message) - 2 * ends:,} characters ...] {message[-ends:]}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean X?"`` for the closest known words, or an empty string."""
    lowered = {item.lower(): item for item in sorted(known, reverse=True)}
    found = difflib.get_close_matches(word.lower(), lowered, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(lowered[item] for item in found)}?" if found else ""
