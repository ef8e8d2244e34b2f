"""Check the internal links of the built site: pages, files and anchors.

``make docs`` runs it. python docs/links.py [SITE]
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect one tag's."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.targets.add(value)


def read(page: Path) -> Links:
    """Parse a page."""
    links = Links()
    links.feed(page.read_text())
    return links


def broken(site: Path) -> list[str]:
    """Return the links that lead nowhere, with their pages."""
    pages = {page.resolve(): read(page) for page in sorted(site.rglob("*.html")) if page.name != "404.html"}
    found = []
    for page, links in pages.items():
        for link in sorted(links.targets):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            known = not anchor or target not in pages or anchor in pages[target].anchors
            if not (target.exists() and known):
                found.append(f"{page.relative_to(site.resolve())}: {link}")
    return found


if __name__ == "__main__":
    if lines := broken(Path(sys.argv[1] if len(sys.argv) > 1 else "site")):
        sys.exit("broken links:\n" + "\n".join(lines))
