"""Flags: from the options' dataclass to a parser, and from what was typed to values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from escalade.cli.registry import COMMANDS
from escalade.config.commands import default_of, flag, form
from escalade.config.conversion import Values, convert
from escalade.config.options import OPTIONS
from escalade.config.strategy_text import split_strategy
from escalade.config.synonyms import meant
from escalade.errors import InputError
from escalade.support.output import printing

Command = Callable[[argparse.Namespace], int]
"""A function that runs a command, given what was typed, and returns its exit code."""

_NEGATIVE = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_ARGUMENT = re.compile(r"`([a-z][a-z_]*)(?:=([^`]*))?`")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that names the input and, where there is one, its nearest.

    ``refusals`` says why a flag that other commands have is not one of this command.
    """

    def __init__(self, **keywords: Any) -> None:
        keywords |= {"formatter_class": _Formatter, "allow_abbrev": False}
        super().__init__(**keywords)
        self._negative_number_matcher = _NEGATIVE  # argparse's own takes -1e3 for a flag
        self.refusals: dict[str, str] = {}
        self._rare: dict[argparse.Action, str | None] = {}

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        raise InputError(f"{message} (see '{self.prog} --help')")

    def print_help(self, file: Any = None) -> None:
        """Print the help; argparse itself would say nothing of a standard output that is full."""
        with printing():
            print(self.format_help(), end="", file=file, flush=True)

    def hide(self, action: argparse.Action) -> None:
        """List an argument by ``--help-all`` alone."""
        if not self._rare:
            self.add_argument("--help-all", action=_HelpAll, help="show all flags and exit")
        self._rare[action], action.help = action.help, argparse.SUPPRESS

    def show_all(self) -> None:
        """List the hidden arguments, too."""
        for action, text in self._rare.items():
            action.help = text

    def refuse(self, unknown: str) -> NoReturn:
        """Say that ``unknown`` was not expected."""
        name = unknown.partition("=")[0]
        if name in self.refusals:
            raise InputError(with_flags(f"{name} {self.refusals[name]}", self.flags()))
        if not name.startswith("--"):
            self.error(f"unexpected {unknown!r}")
        self.error(with_flags(f"unknown flag {name} here{meant(name, self.flags())}", self.flags()))

    def flags(self) -> dict[str, str]:
        """The command's flags by the names of the arguments that they set."""
        return {
            action.dest: action.option_strings[-1 if action.option_strings[0] == "-h" else 0]
            for action in reversed(self._actions)  # the first of those that set one argument is its flag
            if action.option_strings
        }


class _HelpAll(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: Any, *parsed: Any) -> None:
        parser.show_all()
        parser.print_help()
        parser.exit()


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


def add_command(
    commands: Any, name: str, subject: str, run: Command, *, more: str = "", examples: Sequence[str]
) -> Parser:
    """Add a command to ``commands``.

    Args:
        commands: what ``add_subparsers`` gave.
        name: what is typed for it.
        subject: what else must be typed, such as ``RUN``; the usage line shows it.
        run: runs it.
        more: what ``--help`` says besides.
        examples: of its use, shown below its flags.
    """
    text = COMMANDS[name].title
    title = "example" if len(examples) == 1 else "examples"
    epilog = "\n".join([f"{title}:", *(f"  escalade {name} {example}" for example in examples)])
    usage = " ".join(part for part in (f"escalade {name}", subject, "[flags]") if part)
    description = f"{text[0].upper()}{text[1:]}.\n\n{more}".strip()
    parser: Parser = commands.add_parser(name, usage=usage, help=text, description=description, epilog=epilog)
    parser.set_defaults(command=run, parser=parser)
    return parser


def add_argument(parser: Parser, name: str, form: str, text: str, default: str) -> argparse.Action:
    """A flag of the command's own; left out, its value is None. ``default`` says what that means."""
    return parser.add_argument(name, metavar=form, help=_with_default(text, default))


def add_environment(parser: Parser, **how: Any) -> None:
    """The argument ENV."""
    parser.add_argument("env", metavar="ENV", help=OPTIONS["env"].metadata["help"], **how)


def add_options(
    parser: Parser, names: Iterable[str], default: str | None = None, *, brief: bool = False
) -> None:
    """Config's options as flags, in their groups.

    Those that are not typed leave no trace, so that presets show through. ``default`` says what an
    option is then, where it is not the dataclass's default. ``brief`` hides rare ones from ``--help``.
    """
    groups: dict[str, Any] = {}
    for name in names:
        title = OPTIONS[name].metadata["group"]
        group = groups.get(title) or parser.add_argument_group(title)
        groups[title] = group
        how: dict[str, Any] = {"metavar": form(name)}
        if OPTIONS[name].type in ("bool", "bool | None"):
            how = {"action": argparse.BooleanOptionalAction}
        if OPTIONS[name].metadata["flag"] is not None:
            how["dest"] = name
        if OPTIONS[name].metadata["repeats"]:
            how["action"] = "append"
        text = _with_default(OPTIONS[name].metadata["help"], default or default_of(name))
        action = group.add_argument(flag(name), default=argparse.SUPPRESS, help=text, **how)
        if brief and OPTIONS[name].metadata["rare"]:
            parser.hide(action)


def options_typed(parsed: argparse.Namespace, but: Sequence[str] = ()) -> Values:
    """The config options among what was typed, converted.

    Raises:
        InputError: a value is not of its option's type.
    """
    return split_strategy(
        {
            name: convert(name, value)
            for name, value in vars(parsed).items()
            if name in OPTIONS and name not in but and value is not None
        }
    )


def whole(name: str, text: str | None, least: int = 1) -> int | None:
    """The whole number of at least ``least`` that was typed for ``name``; None where nothing was.

    Raises:
        InputError: it is none.
    """
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) >= least):
        raise InputError(f"`{name}` {text!r} must be a whole number of at least {least}")
    return int(text)


def with_flags(message: str, flags: Mapping[str, str]) -> str:
    """A library's message for a command with these ``flags``, by argument.

    Arguments stand in backticks in messages (see :class:`escalade.errors.EscaladeError`). Those that
    the command has as flags are written as flags; the others stay.
    """

    def written(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in flags:
            return found[0]
        return flags[name] if value is None else f"{flags[name]} {value}"

    return _ARGUMENT.sub(written, message)


def _with_default(text: str, default: str) -> str:
    return f"{text} (default: {default})".replace("%", "%%")
