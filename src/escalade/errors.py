"""Exceptions of Escalade: one class for invalid input, three for failures at run time."""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_LONGEST = 4000  # characters in a message; other libraries' messages may hold megabytes
_SHORT = 200  # characters of an exception that every member may raise
_LIBRARIES = (os.path.dirname(os.__file__), os.path.dirname(__file__))  # Python's and Escalade's


class EscaladeError(Exception):
    """Base class of all exceptions that Escalade raises on purpose, with a message of one line.

    The message has arguments and options in backticks, as in `population` or `workers=0`. The command line
    prints them as flags, ``--population`` and ``--workers 0``, if the command has such flags.
    ``exit_code`` is the exit code of the command line.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(shortened(" ".join(message.split())))


class InputError(EscaladeError, ValueError):
    """Invalid input from the user; the message names the input and what to do about it."""

    exit_code = 2


class Diverged(InputError):
    """A search distribution left the range of numbers that floating point can represent."""


class EnvironmentFailure(EscaladeError, RuntimeError):
    """The environment or the user's fitness function raised; the message names how to reproduce it."""


class EngineFailure(EscaladeError, RuntimeError):
    """The work could not be done because workers keep dying."""


class StorageFailure(EscaladeError, RuntimeError):
    """The run folder cannot be written, for example because the disk is full or was removed."""


Catch = bool | type[Exception] | tuple[type[Exception], ...]
"""Exceptions of the user's function that count as the worst of a generation: True for all, or types."""


def caught(catch: Catch) -> tuple[type[BaseException], ...]:
    """Return ``catch`` as a tuple of exception types.

    Raises:
        InputError: ``catch`` holds anything but exception types.
    """
    if isinstance(catch, bool):
        return (Exception, SystemExit) if catch else ()
    types = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(one, type) and issubclass(one, Exception) for one in types):
        raise InputError(f"catch {catch!r} must be True or exception types such as (ValueError, OSError)")
    return types


@contextmanager
def about(subject: str, kind: type[InputError] = InputError) -> Iterator[None]:
    """Prefix the message of an InputError with ``subject``, if not empty, and raise it as ``kind``."""
    try:
        yield
    except InputError as problem:
        raise kind(f"{subject}: {problem}" if subject else str(problem)) from None


def one_line(problem: BaseException) -> str:
    """Return an exception as one line: ``TypeError: its message``."""
    return " ".join(f"{type(problem).__name__}: {text_of(problem)}".split())


def text_of(problem: BaseException) -> str:
    """Return an exception's message, or Python's placeholder if its ``__str__`` raises."""
    try:
        return str(problem)
    except Exception:  # noqa: BLE001 - the user's class may raise anything
        return "<exception str() failed>"


def with_place(problem: BaseException) -> str:
    """Return an exception as one line with its place: ``TypeError: its message (line N of FILE)``."""
    return f"{one_line(problem)} ({place_of(problem)})"


def in_words(problem: BaseException) -> str:
    """Return the same with the message cut to 200 characters, for exceptions that every member may raise."""
    line = one_line(problem)
    return f"{line if len(line) <= _SHORT else f'{line[:_SHORT]}...'} ({place_of(problem)})"


def place_of(problem: BaseException) -> str:
    """Return ``line N of FILE`` for the innermost frame outside libraries, or the innermost of all."""
    frames = traceback.extract_tb(problem.__traceback__)
    place = next((frame for frame in reversed(frames) if _is_users(frame.filename)), frames[-1])
    return f"line {place.lineno} of {os.path.basename(place.filename)}"


def _is_users(file: str) -> bool:
    """Return False for files of Python, of installed packages and of Escalade."""
    installed = "site-packages" in file or "dist-packages" in file
    return not installed and not file.startswith((*_LIBRARIES, "<"))


def shortened(message: str) -> str:
    """Cut the middle of a very long message; its last sentence is the fix."""
    if len(message) <= _LONGEST:
        return message
    ends = _LONGEST // 2
    return f"{message[:ends]} [... {len(message) - 2 * ends:,} characters ...] {message[-ends:]}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean X?"`` for the closest known words, or an empty string."""
    lowered = {item.lower(): item for item in sorted(known, reverse=True)}
    found = difflib.get_close_matches(word.lower(), lowered, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(lowered[item] for item in found)}?" if found else ""
