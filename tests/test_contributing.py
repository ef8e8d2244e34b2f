"""What CONTRIBUTING and the index of the benchmarks say agrees with the repository."""

import re
import tomllib
from pathlib import Path

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
