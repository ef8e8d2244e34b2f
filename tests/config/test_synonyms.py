"""Option names from other libraries are refused with the name used here."""

import pytest

from escalade.cli import main as cli


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--learning-rate", "; did you mean --lr?"),
        ("--optimizer", "; use --strategy openai-es:optimizer=sgd"),
        ("--gpu", "; did you mean --device?"),
    ],
)
def test_a_flag_of_another_library_is_refused_with_our_name(flag, hint, capsys):
    assert cli.main(["train", "CartPole-v1", flag, "1"]) == 2
    assert f"unknown flag {flag} here{hint}" in capsys.readouterr().err
