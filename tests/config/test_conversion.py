"""Options from text and TOML."""

import numpy as np
import pytest

from escalade.config.conversion import convert, from_values
from escalade.errors import InputError


@pytest.mark.parametrize(
    ("name", "value", "kept"), [("sigma", np.float64(0.5), 0.5), ("population", np.int32(8), 8)]
)
def test_a_number_of_numpys_is_taken_as_pythons(name, value, kept):
    found = convert(name, value)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize("name", ["crop", "resize", "recorder", "info_keys", "wrappers"])
def test_none_is_no_value_of_a_list(name):
    for none in ("none", "None", ["none"], (), None):
        assert convert(name, none) == ()


def test_arguments_are_what_a_resumed_run_reads():
    given = {"size": (3, 4), "names": {1: "a"}}
    kept = from_values({"env": "E", "env_kwargs": given})["env_kwargs"]
    assert kept == {"size": [3, 4], "names": {"1": "a"}}
    assert from_values({"env": "E", "env_kwargs": kept})["env_kwargs"] == kept
    assert given == {"size": (3, 4), "names": {1: "a"}}


@pytest.mark.parametrize("values", [{"start_from": "caf\udce9/run"}, {"env_kwargs": {"a": "\ud800"}}])
def test_text_that_no_file_can_hold_is_refused(values):
    with pytest.raises(InputError, match=f"`{next(iter(values))}` .* is not valid"):
        from_values(values)
