"""Command-line flags, built from the options' dataclass, and their conversion to values."""

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
from escalade.config.synonyms import suggest_option
from escalade.errors import InputError
from escalade.support.output import printing

Command = Callable[[argparse.Namespace], int]
"""A function that runs a command with its parsed arguments and returns the exit code."""

_NEGATIVE = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_ARGUMENT = re.compile(r"`([a-z][a-z_]*)(?:=([^`]*))?`")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that names the input and the nearest known flag.

    ``refusals`` maps flags of other commands to the reason why this command does not accept them.
    """

    def __init__(self, **keywords: Any) -> None:
        keywords |= {"formatter_class": _Formatter, "allow_abbrev": False}
        super().__init__(**keywords)
        self._negative_number_matcher = _NEGATIVE  # argparse's own matcher takes -1e3 for a flag
        self.refusals: dict[str, str] = {}
        self._rare: dict[argparse.Action, str | None] = {}

    def error(self, message: str) -> NoReturn:
        """Raise an InputError instead of printing the usage."""
        raise InputError(f"{message} (see '{self.prog} --help')")

    def print_help(self, file: Any = None) -> None:
        """Print the help, and report a full standard output, which argparse ignores."""
        with printing():
            print(self.format_help(), end="", file=file, flush=True)

    def hide(self, action: argparse.Action) -> None:
        """List an argument in ``--help-all`` only."""
        if not self._rare:
            self.add_argument("--help-all", action=_HelpAll, help="show all flags and exit")
        self._rare[action], action.help = action.help, argparse.SUPPRESS

    def show_all(self) -> None:
        """List the hidden arguments too."""
        for action, text in self._rare.items():
            action.help = text

    def refuse(self, unknown: str) -> NoReturn:
        """Raise an InputError about the unknown argument."""
        name = unknown.partition("=")[0]
        if name in self.refusals:
            raise InputError(with_flags(f"{name} {self.refusals[name]}", self.flags()))
        if not name.startswith("--"):
            self.error(f"unexpected {unknown!r}")
        self.error(with_flags(f"unknown flag {name} here{suggest_option(name, self.flags())}", self.flags()))

    def flags(self) -> dict[str, str]:
        """Return the command's flags by the names of the arguments that they set."""
        return {
            action.dest: action.option_strings[-1 if action.option_strings[0] == "-h" else 0]
            for action in reversed(self._actions)  # the first action that sets an argument wins
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
        commands: the result of ``add_subparsers``.
        name: name of the command.
        subject: positional arguments in the usage line, such as ``RUN``.
        run: function that runs the command.
        more: further text of ``--help``.
        examples: arguments of example calls; ``--help`` begins with them.
    """
    text = COMMANDS[name].title
    usage = " ".join(part for part in (f"escalade {name}", subject, "[flags]") if part)
    called = [f"{name} {example}".strip() for example in examples]
    description = described(f"{text[0].upper()}{text[1:]}.", called, more)
    parser: Parser = commands.add_parser(name, usage=usage, help=text, description=description)
    parser.set_defaults(command=run, parser=parser)
    return parser


def described(title: str, examples: Sequence[str], more: str = "") -> str:
    """Return the beginning of a help text: a title, example calls, and further text."""
    heading = "example" if len(examples) == 1 else "examples"
    calls = "\n".join([f"{heading}:", *(f"  escalade {example}" for example in examples)])
    return f"{title}\n\n{calls}\n\n{more}".strip()


def add_argument(parser: Parser, name: str, form: str, text: str, default: str) -> argparse.Action:
    """Add a flag whose value is None if it is not typed; ``default`` describes that case."""
    return parser.add_argument(name, metavar=form, help=_with_default(text, default))


def add_environment(parser: Parser, **how: Any) -> None:
    """Add the positional argument ENV."""
    parser.add_argument("env", metavar="ENV", help=OPTIONS["env"].metadata["help"], **how)


def add_options(
    parser: Parser, names: Iterable[str], default: str | None = None, *, brief: bool = False
) -> None:
    """Add options of the config as flags, in their groups.

    Flags that are not typed set no attribute, so that presets can supply the values.

    Args:
        parser: parser of the command.
        names: names of the options.
        default: description of the default, if it differs from the dataclass's.
        brief: True to hide rarely used options from ``--help``.
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
    """Return the typed config options, converted to their types.

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
    """Convert the text typed for ``name`` to a whole number; return None if nothing was typed.

    Raises:
        InputError: the text is not a whole number of at least ``least``.
    """
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) >= least):
        raise InputError(f"`{name}` {text!r} must be a whole number of at least {least}")
    return int(text)


def with_flags(message: str, flags: Mapping[str, str]) -> str:
    """Replace the arguments in a message by the command's ``flags``, which are keyed by argument.

    Messages have arguments in backticks (see :class:`escalade.errors.EscaladeError`). Arguments without a
    flag stay as they are.
    """

    def written(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in flags:
            return found[0]
        return flags[name] if value is None else f"{flags[name]} {value}"

    return _ARGUMENT.sub(written, message)


def _with_default(text: str, default: str) -> str:
    return f"{text} (default: {default})".replace("%", "%%")
