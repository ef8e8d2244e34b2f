"""Results as notebooks and pandas show them."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from escalade.errors import InputError
from escalade.support.numbers import plain


def shown(value: Any) -> str:
    """A value in a short form, a dash for None."""
    return plain(value) if isinstance(value, float | None) else f"{value}"


def table(title: str, facts: Mapping[str, Any]) -> str:
    """A small HTML table, with a line for every fact."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{rows}</tbody></table>"


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
