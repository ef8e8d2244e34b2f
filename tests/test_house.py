"""The shape of the code: short functions, files of one subject, rooms whose __init__ only exports."""

import ast
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "escalade"
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
LONGEST_FUNCTION = 60
LONGEST_FILE = 350


@cache
def files():
    return {path.relative_to(SOURCE): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


@cache
def trees():
    return {path: ast.parse(text) for path, text in files().items()}


def length(function):
    """Return the number of lines of a function's statements, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_and_files_are_short():
    assert len(files()) > 80
    lines = {str(path): len(text.splitlines()) for path, text in files().items()}
    assert {path: count for path, count in lines.items() if count > LONGEST_FILE} == {}
    functions = {
        f"{path}:{node.lineno} {node.name}": length(node)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    }
    assert {name: count for name, count in functions.items() if count > LONGEST_FUNCTION} == {}


def imported(tree, modules):
    """Return the files that a file imports, including imports in functions and for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in modules else node.module


def test_no_files_import_each_other_in_a_circle():
    named = {".".join(("escalade", *path.with_suffix("").parts)): tree for path, tree in trees().items()}
    graph = {module: set(imported(tree, named)) & named.keys() for module, tree in named.items()}
    assert sum(map(len, graph.values())) > 500
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle


def test_an_init_holds_exports_and_no_logic():
    inits = {path: tree for path, tree in trees().items() if path.name == "__init__.py"}
    assert len(inits) > 10
    for path, tree in inits.items():
        assert not [node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS | ast.ClassDef)], path


def test_constructors_spell_their_arguments_out():
    for path, tree in trees().items():
        if "cli" in path.parts:  # whose parser takes what argparse takes
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                makers = [one for one in node.body if isinstance(one, FUNCTIONS) and one.name == "__init__"]
                loose = [maker for maker in makers if maker.args.kwarg and not is_typed(maker.args.kwarg)]
                assert not loose, f"{path}: {node.name}"


def is_typed(keywords):
    """Return whether ``**keywords: Unpack[...]`` declares the accepted names."""
    return ast.unparse(keywords.annotation).startswith("Unpack[")


def test_no_class_name_stands_for_two_classes():
    nodes = [node for tree in trees().values() for node in ast.walk(tree)]
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert not [name for name, count in names.items() if count > 1]
