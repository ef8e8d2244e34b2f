"""Errors name the argument in the library and the flag on the command line."""

import re
from pathlib import Path

import pytest
from tests.commands import parsers

import escalade
from escalade.cli import main as cli
from escalade.cli.arguments import flag, with_flags
from escalade.config.options import OPTIONS

# Invalid options and combinations.
WRONG = [
    {"strategy": "ars", "population": 7},
    {"population": "many"},
    {"sigma": "linear:0.1:0:9"},
    {"lr": -1.0},
    {"target_return": float("inf")},
    {"policy": "no_such_module:make"},
    {"cutoff": "mean:0"},
    {"strategy": "ars:shaping=nes"},
    {"strategy": "cma-es", "min_episodes": 9},
    {"strategy": "pgpe", "sigma": "linear:0.1:0.01:9"},
    {"strategy": "arss:top_directions=9"},
    {"env_kwargs": {"size": 3}},
    {"head": "uniform:5"},
    {"action_noise": 0.1},
    {"reward": "info=speed"},
    {"wrappers": ["gymnasium.wrappers:TimeLimit(steps=3)"], "backend": "gymnasium"},
    {"wrappers": ["gymnasium.wrappers:TimeAwareObservation"], "backend": "envpool"},
]


def typed(value):
    if isinstance(value, dict):
        return '{"size": 3}'
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def named_in(message):
    return set(re.findall(r"`([a-z_]+)(?:=[^`]*)?`", message))


@pytest.mark.parametrize("options", WRONG, ids=lambda options: "-".join(map(str, options.values())))
def test_library_errors_name_arguments_and_command_errors_name_flags(options, capsys, tmp_path):
    with pytest.raises(escalade.InputError) as raised:
        escalade.train("CartPole-v1", preset=None, verbose=False, run_dir=tmp_path / "run", **options)
    message = str(raised.value)
    assert "--" not in message
    assert named_in(message) <= set(OPTIONS)
    assert named_in(message) & set(options)
    flags = [f"{flag(name)}={typed(value)}" for name, value in options.items()]
    assert cli.main(["train", "CartPole-v1", "--preset", "none", *flags]) == 2
    output = capsys.readouterr().err
    assert "`" not in output
    for name in named_in(message):
        assert flag(name) in output


def test_names_without_a_flag_are_left_unchanged():
    flags = parsers()["plot"].flags()
    assert with_flags("`output` x: `population` 3, `workers=0`", flags) == (
        "--output x: `population` 3, `workers=0`"
    )


def test_no_message_suggests_a_flag_that_the_command_does_not_have():
    """Outside ``cli`` no message spells a flag: ``with_flags`` inserts them."""
    spelled = [
        f"{path.name}: {line.strip()}"
        for path in Path(escalade.__file__).parent.rglob("*.py")
        if path.parent.name != "cli" and "add_command(" not in (text := path.read_text())
        for line in text.replace("var(--", "var(").splitlines()  # colors of a page
        if re.search(r"""^[^#]*f?["'].*(?<![-`\w])--[a-z]""", line)
        and "``--" not in line
        and "hf download" not in line
    ]
    assert spelled == []
