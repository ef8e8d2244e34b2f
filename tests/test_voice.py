"""All prose follows the rules of tests/voice.py, and each of its rules finds a line that breaks it."""

import pytest
from tests.voice import PLACES, ROOT, files, findings, nodes

BROKEN = [
    ("README.md", "It stops where there is no target.", "where"),
    ("README.md", "- Where neither is set, it stops.", "where"),
    ("README.md", "The mean is None where nothing ended.", "where"),
    ("README.md", "The message tells you the fix.", "speech"),
    ("README.md", "As the user asked, it stops.", "speech"),
    ("README.md", "The options that were given to it.", "given"),
    ("README.md", "The mend is to install it.", "private word"),
    ("README.md", "That is no option.", "private word"),
    ("README.md", "It has the same bits on two workers.", "bits"),
    ("README.md", "The centre moves.", "British spelling"),
    ("a.py", "x = 1  # normalised observations", "British spelling"),
    ("a.py", 'raise ValueError("nobody reads this")', "private word"),
    ("a.py", "x = 1  # as the caller said", "speech"),
    ("a.py", '"""A module.\n\nIts results are equal bit for bit.\n"""', "bits"),
    ("a.py", '"""Whether it stops."""', "clause as a noun"),
    ("a.py", 'class A:\n    x = 1\n    """What it gives."""', "clause as a noun"),
    ("a.py", '"""Return the mean"""', "first line"),
    ("a.py", '"""Return the mean of\nall members."""', "first line"),
    ("a.py", '"""Return the mean. It is a float.\n\nIt is finite.\n"""', "first line"),
]
PLAIN = [
    (
        "README.md",
        "There is no target, so it is no longer than `say where none is given`; given that, it stops.",
    ),
    ("README.md", "The folder where runs are saved.\n\n```\nwhere there is none, nobody said\n```"),
    ("a.py", '"""Return the mean. It is a float."""\nx = 1  # the last bits of 16 bits'),
    ("a.py", '"""Deep GA: Such et al. 2017.\n\nWhich seed is used?\n"""\nx = "Such et al. 2017"'),
]


def test_prose_follows_the_rules():
    paths = files(list(PLACES))
    assert len(paths) > 500
    names = {path: str(path.relative_to(ROOT)) for path in paths}
    assert [(names[path], *found) for path in paths for found in findings(path, names[path])] == []


@pytest.mark.parametrize(("name", "text", "rule"), BROKEN)
def test_a_broken_line_is_found(name, text, rule, tmp_path):
    (tmp_path / name).write_text(text)
    assert {rule} == {found for _, found, _ in findings(tmp_path / name)}


@pytest.mark.parametrize(("name", "text"), PLAIN)
def test_a_plain_line_is_not_found(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    assert list(findings(tmp_path / name)) == []


def test_names_in_the_source_are_not_speech():
    for path in files(["src"]):
        program = nodes(path.read_text()) if path.suffix == ".py" else []
        names = {getattr(node, field, None) for node in program for field in ("id", "attr", "arg", "name")}
        assert not names & {"say", "say_once", "given"}, path
