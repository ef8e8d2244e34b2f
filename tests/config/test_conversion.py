"""Conversion of options from text and TOML."""

import numpy as np
import pytest

from escalade.config.conversion import convert, from_values
from escalade.errors import InputError


@pytest.mark.parametrize(
    ("name", "value", "kept"), [("sigma", np.float64(0.5), 0.5), ("population", np.int32(8), 8)]
)
def test_numpy_numbers_are_converted_to_python_numbers(name, value, kept):
    found = convert(name, value)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize("name", ["crop", "resize", "recorder", "info_keys", "wrappers"])
def test_none_means_an_empty_list(name):
    for none in ("none", "None", ["none"], (), None):
        assert convert(name, none) == ()


def test_env_kwargs_are_normalized_to_their_stored_form():
    given = {"size": (3, 4), "names": {1: "a"}}
    kept = from_values({"env": "E", "env_kwargs": given})["env_kwargs"]
    assert kept == {"size": [3, 4], "names": {"1": "a"}}
    assert from_values({"env": "E", "env_kwargs": kept})["env_kwargs"] == kept
    assert given == {"size": (3, 4), "names": {1: "a"}}


@pytest.mark.parametrize("values", [{"start_from": "caf\udce9/run"}, {"env_kwargs": {"a": "\ud800"}}])
def test_text_that_cannot_be_encoded_is_refused(values):
    with pytest.raises(InputError, match=f"`{next(iter(values))}` .* is not valid"):
        from_values(values)
