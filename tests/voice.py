"""Find sentences that break the rules of style: ``python -m tests.voice [PATH ...]`` prints them.

Documentation is written as PyTorch's and Gymnasium's is: plain words, "if" for conditions, and machines that
return, print, raise or report.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples", "src", "benchmarks", "tests")

WORDS = {
    "private word": r"\bmend(s|ed|ing)?\b|\bnobody\b|\bas (it|they) (went|goes|go)\b|\bstands? in\b"
    r"|\bhas to do\b|(?<!there )\b(is|are) no [a-z]+\b"
    r"(?! (more|longer|better|worse|larger|smaller|faster|slower))",
    "bits": r"\b(same|other|different|last|own) bits\b|\bbit for bit\b",
    "speech": r"\b(says?|said|saying|tells|told|telling|asked|answers|answered)\b",
    "given": r"\bgiven\b(?! that\b)",
    "where": r"\bwhere (there (is|are|was|were)|it (is|has|was|can|does)|they (are|have|were|do)|none\b|one\b"
    r"|nothing\b|that is\b|the [a-z_` ]+ (is|are|has|have|was|were|does|do)\b)"
    r"|\b(None|True|False|empty|0) where\b",
    "clause as a noun": r"^(What|Whether|Who|How|Where|Which|That|Those|Such)\b(?!.*\?$)",
}
PATTERNS = {name: re.compile(pattern) for name, pattern in WORDS.items()}
FIRST_LINE = {"clause as a noun"}


def sentences(path: Path) -> Iterator[tuple[int, str, bool]]:
    """The lines of prose in a file: number, text, and whether it is the first line of a docstring."""
    text = path.read_text()
    if path.suffix == ".md":
        fenced = False
        for number, line in enumerate(text.splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            if not fenced and not line.startswith("    "):
                yield number, re.sub(r"`[^`]*`", "``", line), False
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            first = node.lineno
            for offset, line in enumerate(node.value.splitlines()):
                yield first + offset, re.sub(r"`[^`]*`", "``", line.strip()), offset == 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], re.sub(r"`[^`]*`", "``", token.string.lstrip("# ")), False


def findings(path: Path) -> Iterator[tuple[int, str, str]]:
    """The lines that break a rule: number, rule and text."""
    for number, line, first in sentences(path):
        for name, pattern in PATTERNS.items():
            if (first or name not in FIRST_LINE) and pattern.search(line):
                yield number, name, line


def files(places: list[str]) -> list[Path]:
    paths = [ROOT / place for place in places]
    inner = [
        found for path in paths if path.is_dir() for end in ("*.py", "*.md") for found in path.rglob(end)
    ]
    found = [path for path in paths if path.is_file()] + inner
    return sorted(path for path in found if path.name != "voice.py" and "results" not in path.parts)


def main(places: list[str]) -> None:
    counts: dict[str, int] = {}
    for path in files(places or list(PLACES)):
        for number, name, line in findings(path):
            counts[name] = counts.get(name, 0) + 1
            print(f"{path.relative_to(ROOT)}:{number}: {name}: {line.strip()[:110]}")
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
