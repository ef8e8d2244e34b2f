"""The place that an exception is said to come from."""

import numpy as np
import pytest

from escalade.errors import place_of, with_place


def test_the_place_is_the_users_line_and_not_a_librarys():
    with pytest.raises(AssertionError) as raised:
        np.testing.assert_array_equal(1, 2)
    assert place_of(raised.value).endswith(" of test_errors.py")


def test_where_no_line_is_the_users_it_is_the_innermost():
    with pytest.raises(AssertionError) as raised:
        np.testing.assert_array_equal(1, 2)
    raised.value.__traceback__ = raised.value.__traceback__.tb_next  # as far as a library sees it
    assert not with_place(raised.value).endswith("of test_errors.py)")
