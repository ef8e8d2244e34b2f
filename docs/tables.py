"""Tables that follow from the code: ``{{ strategies }}`` and ``{{ networks }}`` stand for their lists."""

from __future__ import annotations

from typing import Any

from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.strategies.registry import STRATEGIES


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables in; mkdocs calls this for every page."""
    rows = [
        f"| `{entry.class_name}` | `{name}` | {entry.paper} | {entry.use} |"
        for name, entry in STRATEGIES.items()
    ]
    networks = [
        f"| `{name}` | {entry.title} | {entry.use} | {', '.join(sorted(entry.options)) or '-'} |"
        for name, entry in ARCHITECTURES.items()
    ]
    top = ["| name | network | made for | options it reads |", "| --- | --- | --- | --- |"]
    markdown = markdown.replace("{{ networks }}", "\n".join(top + networks))
    head = ["| class | name | paper | good for |", "| --- | --- | --- | --- |"]
    return markdown.replace("{{ strategies }}", "\n".join(head + rows))
