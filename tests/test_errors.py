"""The file and line reported for an exception."""

import numpy as np
import pytest

from escalade.errors import place_of, with_place


def test_the_reported_line_is_in_user_code_rather_than_a_library():
    with pytest.raises(AssertionError) as raised:
        np.testing.assert_array_equal(1, 2)
    assert place_of(raised.value).endswith(" of test_errors.py")


def test_without_user_code_the_innermost_line_is_reported():
    with pytest.raises(AssertionError) as raised:
        np.testing.assert_array_equal(1, 2)
    raised.value.__traceback__ = raised.value.__traceback__.tb_next  # as far as a library sees it
    assert not with_place(raised.value).endswith("of test_errors.py)")
