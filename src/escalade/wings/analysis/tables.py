"""Tables of text, as pages and papers have them: markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


@dataclass(frozen=True)
class Table:
    """Cells of text below their headings; the first column is text, the others numbers where ``numbers``."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: bool = True
    notes: tuple[str, ...] = ()
    """Lines to stand below it."""

    def markdown(self) -> str:
        """The table in the markdown of GitHub, with its title and notes."""
        marks = ["---", *(["---:" if self.numbers else "---"] * (len(self.columns) - 1))]
        cells = [tuple(map(_in_markdown, line)) for line in (self.columns, *self.rows)]
        written = [f"| {' | '.join(line)} |" for line in (cells[0], marks, *cells[1:])]
        return "\n".join([f"**{_in_markdown(self.title)}**", "", *written, *self._below(_in_markdown)])

    def latex(self) -> str:
        """The table as a ``tabular`` that needs no package, its title a comment, its notes below."""
        sides = "l" + ("r" if self.numbers else "l") * (len(self.columns) - 1)
        lines = [" & ".join(map(_in_latex, line)) + r" \\" for line in (self.columns, *self.rows)]
        head = [
            f"% {' '.join(self.title.split())}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\hline",
            lines[0],
            r"\hline",
        ]
        return "\n".join([*head, *lines[1:], r"\hline", r"\end{tabular}", *self._below(_in_latex)])

    def html(self) -> str:
        """The table as notebooks show one."""
        side = "right" if self.numbers else "left"
        rows = [_html_row("th", self.columns, side), *(_html_row("td", row, side) for row in self.rows)]
        below = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table><caption>{html.escape(self.title)}</caption>{''.join(rows)}</table>{below}"

    def _below(self, escape: Callable[[str], str]) -> list[str]:
        return [line for note in self.notes for line in ("", escape(note))]


def _html_row(kind: str, cells: Sequence[str], side: str) -> str:
    sides = ["left", *[side] * (len(cells) - 1)]
    written = (
        f"<{kind} style='text-align:{at}'>{html.escape(cell)}</{kind}>"
        for at, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(written)}</tr>"


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<\[])", r"\\\1", " ".join(text.split()))


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))
