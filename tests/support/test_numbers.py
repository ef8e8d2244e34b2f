"""Numbers formatted for people."""

import math

import numpy as np
import pytest
import torch

from escalade import InputError
from escalade.support.numbers import finite, number, plain, real_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4812.345, "4,812.3"),
        (0.00042, "0.00042"),
        (-0.000421234, "-0.0004212"),
        (4.2e-7, "4.2e-07"),
        (-1e9, "-1,000,000,000"),
        (1e30, "1e+30"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (237.04, "237.0"),
        (7, "7"),
        (np.float32(0.25), "0.25"),
        (math.nan, "nan"),
        (None, "-"),
    ],
)
def test_significant_digits_are_shown(value, text):
    assert number(value) == text
    assert plain(value) == text.replace(",", "")


def test_json_contains_no_nan():
    found = finite({"mean": math.nan, "most": math.inf, "count": 3, "name": "a", "kept": 0.5})
    assert found == {"mean": None, "most": None, "count": 3, "name": "a", "kept": 0.5}


@pytest.mark.parametrize("given", [torch.ones(2), 10**400, "3", None, math.nan])
def test_values_that_are_not_numbers_are_refused(given):
    with pytest.raises(InputError, match="target must be a number, not "):
        real_number(given, "target")
