"""Options that went: the old files are still read where they said nothing, and else told what to write."""

import pytest
from tests.commands import parsers

from escalade import InputError
from escalade.cli import main as cli
from escalade.config.conversion import from_values
from escalade.config.options import OPTIONS
from escalade.config.removed import REMOVED


def test_none_of_them_is_an_option():
    assert not REMOVED.keys() & OPTIONS.keys()


def test_what_is_as_it_was_when_it_was_not_given_is_passed_over():
    old = {name: default for name, (default, _) in REMOVED.items()}
    for values in (old, dict.fromkeys(REMOVED, "none")):
        assert from_values({"env": "CartPole-v1"} | values) == {"env": "CartPole-v1"}


@pytest.mark.parametrize("name", REMOVED)
def test_anything_else_is_told_what_replaces_it(name):
    with pytest.raises(InputError, match=f"^old.toml: `{name}` is no option any more: [a-z]"):
        from_values({name: 7}, "old.toml")


def test_so_is_a_flag(capsys):
    assert cli.main(["train", "CartPole-v1", "--burn-in", "40"]) == 2
    assert capsys.readouterr().err == (
        "escalade: --burn-in is no flag any more: use --wrap 'escalade.envs.wrappers:BurnIn(40)'\n"
    )
    assert "--burn-in" in parsers()["resume"].refusals
