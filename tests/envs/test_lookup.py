"""Errors of unknown environments."""

import pytest

from escalade.envs import resolve
from escalade.errors import InputError


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module.Walk", "write your own environment as MODULE:Class or MODULE:Id-v0"),
        ("tests.environments:Qwertz", "module tests.environments neither defines nor registers Qwertz"),
        ("config.toml", "is a file: pass a file of options as `config`"),
    ],
)
def test_an_unknown_name_raises_with_a_suggestion(name, said):
    with pytest.raises(InputError, match=said):
        resolve(name)


def test_a_file_raises_with_the_name_of_its_module():
    with pytest.raises(InputError, match=r"is a file: write sim:Arm and run in sims$"):
        resolve("sims/sim.py:Arm")
    with pytest.raises(InputError, match=r"is a file: write sim:Arm$"):
        resolve("./sim.py:Arm")
