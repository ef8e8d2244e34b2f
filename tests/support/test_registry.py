"""Registries: the data of an entry is available without importing its module."""

import sys
from dataclasses import replace

import pytest

from escalade import InputError
from escalade.envs.backends import BACKENDS
from escalade.policies.activations import ACTIVATIONS
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.recorders.registry import RECORDERS
from escalade.support.registry import Entry, check_named, find, named

THINGS = {"one": Entry("One", "escalade_things:One"), "file": Entry("File", "escalade_things")}


@pytest.fixture(autouse=True)
def things(tmp_path, monkeypatch):
    (tmp_path / "escalade_things.py").write_text(
        "class One:\n    pass\n\n\ndef two():\n    pass\n\n\nTHREE = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("escalade_things", None)


def test_an_entry_is_imported_on_first_use():
    assert "escalade_things" not in sys.modules
    kind = THINGS["one"].load()
    assert kind is sys.modules["escalade_things"].One
    assert THINGS["file"].load() is sys.modules["escalade_things"]


def test_a_name_is_a_registered_entry_or_a_path_to_user_code():
    kind = find("thing", "one", THINGS)
    assert find("thing", "escalade_things:One", THINGS) is kind
    with pytest.raises(InputError, match=r"^`thing` escalade_things:tow: .* has no tow; did you mean two\?$"):
        find("thing", "escalade_things:tow", THINGS)
    with pytest.raises(InputError, match="has no THREE"):
        find("thing", "escalade_things:THREE", THINGS)  # it is not callable


def test_an_unknown_name_is_reported_with_the_nearest_or_all_names():
    with pytest.raises(InputError, match=r"^unknown `thing` 'fil'; did you mean file\?$"):
        named("thing", "fil", THINGS)
    with pytest.raises(
        InputError, match=r"^unknown `thing` 'xyz': it must be one of one, file, or a class of yours$"
    ):
        check_named("thing", "xyz", THINGS, ", or a class of yours")
    with pytest.raises(InputError, match=r"^unknown `thing` 3: it must be one of one, file$"):
        named("thing", 3, THINGS)


def test_a_missing_package_is_reported_with_its_install_command():
    there = replace(THINGS["one"], packages=("json",), extra="things")
    there.check_installed("thing")
    with pytest.raises(
        InputError, match=r"^`thing`: One needs no_such and nor_this; install the extra 'things' of escalade"
    ):
        replace(there, packages=("no_such", "json", "nor_this")).check_installed("thing")


@pytest.mark.parametrize("registry", [ARCHITECTURES, ACTIVATIONS, BACKENDS, RECORDERS])
def test_every_registered_entry_can_be_loaded(registry):
    for entry in registry.values():
        if entry.installed:
            assert entry.load() is not None
