"""The shape of the code: short functions, files of one subject, rooms whose __init__ only exports."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "escalade"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FUNCTION = 60
LONGEST_FILE = 350


def statements(function):
    """A function's statements, but for its docstring."""
    return function.body[1:] if ast.get_docstring(function) else function.body


def test_the_source_is_found():
    assert len(FILES) > 80


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_functions_and_files_are_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (body := statements(node)):
            length = body[-1].end_lineno - body[0].lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", [path for path in FILES if path.name == "__init__.py"], ids=str)
def test_an_init_holds_exports_and_no_logic(path):
    tree = ast.parse(path.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]


LIBRARY = [path for path in FILES if "cli" not in path.parts]  # whose parser takes what argparse takes


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(SOURCE)))
def test_constructors_spell_their_arguments_out(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            makers = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
            assert not [maker for maker in makers if maker.args.kwarg], node.name
