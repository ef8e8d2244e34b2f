"""Find prose that breaks the rules of style: ``python -m tests.voice [PATH ...]`` prints it.

Documentation is written as PyTorch's and Gymnasium's is: plain words, "if" for conditions, and machines that
return, print, raise or report. ``tests/test_voice.py`` runs this on everything.
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
    "private word": r"\bmend(s|ed|ing)?\b|\bnobody\b(?!/)|\bas (it|they) (went|goes|go)\b|\bstands? in\b"
    r"|\bhas to do\b|(?<![Tt]here )\b(is|are) no (?!more\b|worse\b|longer\b|[a-z]+er (than)?)[a-z]+\b",
    # "last bits" measure rounding, as "16 bits" measure a number.
    "bits": r"\b(same|other|different|own|its|member's) bits\b|\bbit for bit\b|^Bits\b|\*Bits\b",
    "speech": r"\b(says?|said|saying|tells|told|telling|asks|asked|asking|answers|answered|answering)\b",
    "given": r"\bgiven\b(?! that\b)",
    "British spelling": r"(?i)centre|behaviour|colour|neighbour|favour|catalogue|\b(kilo)?metres?\b|\bgrey"
    r"|(normal|optim|minim|maxim|initial|vector|general|organ|recogn|linear|random|summar)is(e|ing|ation)",
    "where": r"\bwhere (there (is|are|was|were)|it (is|has|was|can|does)|they (are|have|were|do)|none\b|one\b"
    r"|nothing\b|neither\b|that is\b|the [a-z_` ]+ (is|are|has|have|was|were|does|do)\b)"
    r"|\b(None|True|False|empty|0|only) where\b|^Where .*,",
}
RULES = {name: re.compile(pattern) for name, pattern in WORDS.items()}
CLAUSE = re.compile(
    r"\s*(What|Whether|Who|Whose|How|When|Where|Which|Why|That|Those|Such|Of|In|By|Behind|Along|Among|Likewise"
    r"|Instead)\b(?!.*\?$)"
)
SENTENCES = re.compile(r"(?<!et al)[.!?] (?=[A-Z`])")
EXCEPTIONS = {("examples/language_model.py", "speech")}  # its model answers questions


def nodes(text: str) -> list[ast.AST]:
    """Return the nodes of a Python program."""
    return list(ast.walk(ast.parse(text)))


def of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines outside of code, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and not line.startswith("    "):
            yield number, line


def of_python(text: str, program: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Return the lines of docstrings, other strings and comments, with their numbers."""
    for node in program:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield from enumerate(node.value.splitlines(), node.lineno)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def docstrings(program: list[ast.AST]) -> Iterator[tuple[int, list[str]]]:
    """Return the lines of each docstring, with the number of the first."""
    for node in program:
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip().splitlines()


def findings(path: Path, name: str = "") -> Iterator[tuple[int, str, str]]:
    """Return the lines that break a rule: number, rule and text. ``name`` is the path in the repository."""
    text = path.read_text()
    program = nodes(text) if path.suffix == ".py" else []
    for number, line in of_python(text, program) if path.suffix == ".py" else of_markdown(text):
        prose = re.sub(r"`[^`]*`", "``", line.strip().lstrip("#- ").strip())
        for rule, pattern in RULES.items():
            if pattern.search(prose) and (name, rule) not in EXCEPTIONS:
                yield number, rule, line.strip()
    for number, (first, *rest) in docstrings(program):
        if CLAUSE.match(first):
            yield number, "clause as a noun", first
        if not re.search(r"[.?](``)?$", first) or (rest and (rest[0].strip() or SENTENCES.search(first))):
            yield number, "first line", first


def files(places: list[str]) -> list[Path]:
    """Return the files below ``places``, without the two that quote broken lines."""
    paths = [ROOT / place for place in places]
    inner = [
        found for path in paths if path.is_dir() for end in ("*.py", "*.md") for found in path.rglob(end)
    ]
    found = [path for path in paths if path.is_file()] + inner
    return sorted(path for path in found if not path.match("tests/*voice.py") and "results" not in path.parts)


def main(places: list[str]) -> int:
    """Print the broken lines and return their number."""
    count = 0
    for path in files(places or list(PLACES)):
        name = str(path.relative_to(ROOT))
        for number, rule, line in findings(path, name):
            count += 1
            print(f"{name}:{number}: {rule}: {line[:110]}")
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
