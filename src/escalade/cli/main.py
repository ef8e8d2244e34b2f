"""The ``escalade`` command: parse the arguments, run the command, exit with its code."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from escalade import __version__
from escalade.cli.arguments import Parser, described, with_flags
from escalade.cli.registry import COMMANDS
from escalade.errors import EscaladeError
from escalade.storage.files import discard_in_flight
from escalade.support.interrupts import INTERRUPTED, Interrupts, end_with_leader
from escalade.support.output import OutputFailure, ReaderGone, print_line, printing, visible, wording
from escalade.support.own_process import claim, end_process

_EXAMPLES = (
    "train CartPole-v1 --run-dir runs/first",
    "eval runs/first",
    "render runs/first --output film.mp4",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 success, 2 invalid input, 130 interrupted, 1 otherwise."""
    flags: dict[str, str] = {}
    words = wording.set(str)
    try:
        if sys.stdout is None:
            raise OutputFailure("standard output is closed; redirect it to a file or to /dev/null")
        parsed = parse(arguments)
        flags = parsed.parser.flags()
        wording.set(lambda note: with_flags(note, flags))
        code: int = parsed.command(parsed)
        with printing():
            sys.stdout.flush()
        return code
    except OutputFailure as problem:
        print(f"escalade: {problem}", file=sys.stderr)
        if sys.stdout is not None:
            _give_up_stdout()
        return problem.exit_code
    except EscaladeError as problem:
        print(f"escalade: {visible(with_flags(str(problem), flags))}", file=sys.stderr)
        return problem.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except ReaderGone:  # as with head
        _give_up_stdout()
        return 1
    finally:
        wording.reset(words)


def run() -> NoReturn:
    """Run the typed command as a process of its own."""
    # An exception that a signal raises can be lost in a library that is being imported; os._exit cannot.
    # During training the first Ctrl-C saves the run instead; see escalade.support.interrupts.
    signal.signal(signal.SIGINT, lambda number, frame: _leave())
    signal.signal(signal.SIGQUIT, lambda number, frame: _leave(128 + number))
    Interrupts.leave = staticmethod(_leave)
    end_with_leader()
    claim()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # so that a run does not fail on a terminal without ±
    end_process(main())


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the arguments, by default those of the process.

    Returns:
        The parsed arguments, with the function ``command`` that runs them and the command's ``parser``.

    Raises:
        InputError: there is no such command or flag, or an argument is missing.
    """
    typed = sys.argv[1:] if arguments is None else arguments
    parsed, unknown = make_parser(*typed[:1]).parse_known_args(typed)
    if unknown:
        parsed.parser.refuse(unknown[0])
    return parsed


def make_parser(only: str | None = None) -> Parser:
    """Make the parser of the command ``only``, or of all commands if there is no such command."""
    more = "'escalade COMMAND --help' describes a command and its flags."
    description = described("Evolution strategies for PyTorch.", _EXAMPLES, more)
    parser = Parser(prog="escalade", description=description)
    parser.set_defaults(command=_help, parser=parser)
    parser.add_argument(
        "--version", dest="command", action="store_const", const=_version, help="print the version and exit"
    )
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name in [only] if only in COMMANDS else COMMANDS:
        COMMANDS[name].load()(commands)
    return parser


def _help(parsed: argparse.Namespace) -> int:
    parsed.parser.print_help()
    return 0


def _version(parsed: argparse.Namespace) -> int:
    print_line(f"escalade {__version__}")
    return 0


def _leave(code: int = INTERRUPTED) -> NoReturn:
    """Exit at once and delete half-written files; workers end by themselves with this process."""
    discard_in_flight()
    os._exit(code)


def _give_up_stdout() -> None:
    """Redirect standard output to the null device, as flushing its buffer at exit would fail again."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
