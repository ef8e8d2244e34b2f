"""The ``escalade`` command: parse what was typed, run the command, end with its exit code."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from escalade import __version__
from escalade.cli.arguments import Parser, with_flags
from escalade.cli.registry import COMMANDS
from escalade.errors import EscaladeError
from escalade.storage.files import discard_in_flight
from escalade.support.interrupts import INTERRUPTED, Interrupts, end_with_leader
from escalade.support.output import OutputFailure, ReaderGone, printing, say, visible, wording
from escalade.support.own_process import claim, end_process


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 2 wrong input, 130 interrupted, 1 anything else."""
    flags: dict[str, str] = {}
    words = wording.set(str)
    try:
        if sys.stdout is None:
            raise OutputFailure("standard output is closed: send it to a file, or to /dev/null")
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
    except ReaderGone:  # as head does
        _give_up_stdout()
        return 1
    finally:
        wording.reset(words)


def run() -> NoReturn:
    """Run the command that was typed, as a process of its own."""
    # An exception raised by a signal can be lost in whatever library is being imported; this cannot.
    # While a run is in training, the first Ctrl-C saves it instead: see escalade.support.interrupts.
    signal.signal(signal.SIGINT, lambda number, frame: _leave())
    signal.signal(signal.SIGQUIT, lambda number, frame: _leave(128 + number))
    Interrupts.leave = staticmethod(_leave)
    end_with_leader()
    claim()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a ± is no reason to end a run
    end_process(main())


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse what was typed; its ``command`` runs it and its ``parser`` knows the command's flags.

    Raises:
        InputError: there is no such command or flag, or something is missing.
    """
    typed = sys.argv[1:] if arguments is None else arguments
    parsed, unknown = make_parser(*typed[:1]).parse_known_args(typed)
    if unknown:
        parsed.parser.refuse(unknown[0])
    return parsed


def make_parser(only: str | None = None) -> Parser:
    """Make the parser of the command ``only``, or of all commands if there is no such command."""
    parser = Parser(prog="escalade", description="Evolution strategies for PyTorch.")
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
    say(f"escalade {__version__}")
    return 0


def _leave(code: int = INTERRUPTED) -> NoReturn:
    """End at once and leave nothing behind: workers end with this process by themselves."""
    discard_in_flight()
    os._exit(code)


def _give_up_stdout() -> None:
    """Send what is still in standard output's buffer nowhere: at exit it would fail once more."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
