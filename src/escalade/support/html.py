"""Results as notebooks show them."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

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
