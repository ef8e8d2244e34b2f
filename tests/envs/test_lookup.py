"""The words for a name that is no environment."""

import pytest

from escalade.envs import resolve
from escalade.errors import InputError


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tests.environments.Walk", "one of your own is written with a colon, as tests.environments:Walk"),
        ("tests", "with a colon, as tests:Class"),
        ("__main__", "one of your own is MODULE:Class or MODULE:Id-v0"),
        ("no_such_module.Walk", "one of your own is MODULE:Class or MODULE:Id-v0"),
        ("tests.environments:Qwertz", "module tests.environments has no Qwertz, and registers none"),
        ("config.toml", "names a file: one of options is given as `config`"),
    ],
)
def test_a_name_that_is_none_says_what_may_be_meant(name, said):
    with pytest.raises(InputError, match=said):
        resolve(name)


def test_a_module_is_not_imported_to_guess_at_a_name(tmp_path, monkeypatch):
    (tmp_path / "my_simulator.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="as my_simulator:Class"):
        resolve("my_simulator")


@pytest.mark.parametrize(
    ("folder", "told"), [("", False), ("./", False), ("{here}/", False), ("sims/", True)]
)
def test_who_is_in_the_folder_of_a_file_is_not_sent_there(folder, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="names a file: write sim:Arm") as problem:
        resolve(f"{folder.format(here=tmp_path)}sim.py:Arm")
    assert ("in the folder that holds it" in str(problem.value)) == told
