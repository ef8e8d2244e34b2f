"""``--help`` describes the values, the default and the use of every flag."""

import argparse
import itertools
import re
import shlex

import pytest
from tests.commands import parsers

from escalade.cli import main as cli
from escalade.cli.training import config_typed
from escalade.config.options import OPTIONS, RESUMABLE

COMMANDS = sorted(parsers())


def flags(command):
    """Return the flags of a command except --help, as --help-all lists them."""
    parser = parsers()[command]
    parser.show_all()
    actions = [action for action in parser._actions if action.option_strings]
    return [action for action in actions if not {"--help", "--help-all"} & {*action.option_strings}]


def test_help_lists_the_commands():
    there = "attach bench check compare environments eval export plot presets pull push render report resume"
    assert " ".join(COMMANDS) == f"{there} stop sweep train watch zoo"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_text_names_its_choices_or_form_and_its_default(command):
    wrong = {}
    for action in flags(command):
        formless = isinstance(action, argparse.BooleanOptionalAction | argparse._StoreConstAction)
        form = action.metavar or ""
        if not formless and not re.fullmatch(
            r"\{[\w,.-]+\}|[A-Z][A-Z.,=]*|[a-zA-Z|]+\|[a-zA-Z|]+|RUN\[:CHECKPOINT\]|N\[:max\]", form
        ):
            wrong[action.dest] = f"form {form!r}"
        if not re.search(r"\w.* \(default: .+\)$", action.help or ""):
            wrong[action.dest] = f"help {action.help!r}"
    assert wrong == {}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_prints_every_flag_with_its_text(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help-all" if command in ("train", "resume") else "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    for action in flags(command):
        assert (action.help or "").replace("%%", "%") in printed
        assert f"{action.option_strings[0]}" in printed


def test_the_help_of_train_fits_two_screens(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for flag, hidden in (("--help", True), ("--help-all", False)):
        with pytest.raises(SystemExit):
            cli.main(["train", flag])
        printed = capsys.readouterr().out
        assert (len(printed.splitlines()) <= 100) == hidden
        assert ("--sticky-actions" not in printed) == hidden
        assert "--help-all" in printed


def test_option_texts_are_noun_phrases():
    verbs = "apply|begin|build|end|grow|replace|see|set|show|start|stop|take|use|whether|which|who|how|what"
    texts = {name: option.metadata["help"] for name, option in OPTIONS.items()}
    assert {name: text for name, text in texts.items() if re.match(rf"({verbs})\b", text)} == {}


def test_options_are_listed_in_groups():
    titles = [group.title for group in parsers()["train"]._action_groups]
    others = ["policy", "novelty", "evaluation and limits", "run"]
    assert titles[2:] == ["environment", "frames", "strategy", *others]
    assert {option.metadata["group"] for option in OPTIONS.values()} == set(titles[2:])


def test_resume_lists_only_options_that_can_change():
    assert {action.dest for action in flags("resume")} == set(RESUMABLE)
    assert {action.dest for action in flags("train")} > set(RESUMABLE)


def examples_of(parser):
    """Return the example commands at the start of a help text, below its title."""
    lines = parser.description.splitlines()
    assert (lines[1], lines[2]) in (("", "example:"), ("", "examples:"))
    return [line.strip() for line in itertools.takewhile(str.strip, lines[3:])]


def test_the_help_of_all_commands_begins_with_examples():
    for example in examples_of(cli.make_parser()):
        assert cli.parse(shlex.split(example)[1:]).command


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_in_help_are_valid_commands(command):
    examples = examples_of(parsers()[command])
    assert examples
    for example in examples:
        name, *arguments = shlex.split(example)
        assert name == "escalade"
        assert arguments[0] == command
        assert cli.parse(arguments).parser.prog == f"escalade {command}"


def test_the_examples_of_train_make_valid_configs():
    for words in [shlex.split(line)[1:] for line in examples_of(parsers()["train"])]:
        if not {"--from", "--config"} & set(words):  # their files do not exist here
            assert config_typed(cli.parse(words)).env == words[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_lines_fit_a_terminal(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    long = [line for line in parsers()[command].format_help().splitlines() if len(line) > 100]
    assert long == []
