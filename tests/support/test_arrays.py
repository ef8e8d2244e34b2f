"""The conversion of one number that user code returned."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from escalade.support.arrays import as_float

NUMBERS = [
    2,
    True,
    2.0,
    np.float32(2),
    np.array(2.0),
    np.array([[2]]),
    torch.tensor(2, dtype=torch.bfloat16),
    torch.tensor([2.0], requires_grad=True),
]
OTHERS = [
    "2",
    b"2",
    None,
    [2.0],
    2 + 0j,
    np.complex64(2),
    np.array(["2"]),
    np.zeros(2),
    np.zeros(0),
    10**400,
    torch.zeros(2),
    torch.tensor(2 + 0j),
    torch.zeros(1, device="meta"),
    torch.ones(1).to_sparse(),
]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_a_number_becomes_a_float_whatever_holds_it(value):
    found = as_float(value)
    assert type(found) is float
    assert found in (1.0, 2.0)


@pytest.mark.parametrize("value", OTHERS, ids=lambda value: repr(value)[:30])
def test_what_is_not_one_real_number_is_refused(value):
    with pytest.raises(TypeError, match="is not a real number"):
        as_float(value)


def test_a_value_that_has_no_words_is_refused_as_well():
    class Silent:
        def __repr__(self):
            raise ValueError

    with pytest.raises(TypeError, match="Silent is not a real number"):
        as_float(Silent())
