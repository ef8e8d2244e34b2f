"""Columns of numbers as pandas has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from escalade.errors import InputError


def data_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """The columns as a ``pandas.DataFrame``.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise InputError("to_pandas needs pandas: pip install pandas") from None
    return pandas.DataFrame(dict(columns))
