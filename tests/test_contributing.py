"""What CONTRIBUTING and the index of the benchmarks say agrees with the repository.

The worked example of a new strategy is in tests/strategies.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

import escalade.recorders

ROOT = Path(__file__).parent.parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def rows(text, first):
    """Cells of the table whose first column is called ``first``."""
    table = text.partition(f"| {first} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_map_of_the_rooms_is_the_order_that_is_enforced():
    with (ROOT / "pyproject.toml").open("rb") as file:
        (contract,) = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    named = [re.findall(r"`(\w+)`", room) for room, _ in rows(CONTRIBUTING, "room")]
    assert named == [layer.split(" | ") for layer in contract["layers"]]


def test_the_index_of_the_benchmarks_names_every_script_and_page():
    folder = ROOT / "benchmarks"
    text = (folder / "README.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", text)
    there = {path.name for path in folder.iterdir() if path.is_file()} - {"README.md"}
    assert set(links) == there
    found = {re.match(r"\[(.*?)\]", row[0])[1]: row[2] for row in rows(text, "script")}
    assert list(found) == sorted(path.name for path in folder.glob("*.py"))
    assert all(command.startswith(f"`{script}") for script, command in found.items())


def test_the_make_targets_that_it_names_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", CONTRIBUTING.replace("GNU make 3", "")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.fixture
def follow(monkeypatch, tmp_path):
    """Write the file of a section's example, as its reader would; what the example does with it."""
    before = set(sys.modules)

    def written(section, package):
        text = CONTRIBUTING.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        file, use = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        room, name = re.search(r"`(\w+)/(\w+\.py)`", text).groups()
        assert package.__name__ == f"escalade.{room}"
        (tmp_path / name).write_text(file)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        monkeypatch.chdir(tmp_path)
        return use

    yield written
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(tmp_path / f"{name.rpartition('.')[2]}.py"):
            del sys.modules[name]


def test_a_new_recorder(follow, tmp_path):
    exec(follow("A new recorder", escalade.recorders), {})
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["generation"] for row in rows if "note" not in row] == [1, 2, 3]
    assert {"episodes", "env_steps", "return_mean"} <= rows[0].keys()
