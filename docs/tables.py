"""Tables that follow from the code: a page that says ``{{ strategies }}`` gets the list of them."""

from __future__ import annotations

from typing import Any

from escalade.strategies.registry import STRATEGIES


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables in; mkdocs calls this for every page."""
    rows = [
        f"| `{entry.class_name}` | `{name}` | {entry.paper} | {entry.use} |"
        for name, entry in STRATEGIES.items()
    ]
    head = ["| class | name | paper | good for |", "| --- | --- | --- | --- |"]
    return markdown.replace("{{ strategies }}", "\n".join(head + rows))
