"""The Python and the commands in the guides run, page by page, as if pasted by a reader."""

import importlib.util
import inspect
import pkgutil
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from tests.guides import PAGES, commands

import escalade
import escalade.strategies

DOCS = Path(__file__).parent.parent / "docs"
README, TUTORIAL = "../README.md", "tutorial.md"
# Blocks marked ```python; those of other libraries are marked ```py.
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
EXCERPT = re.compile(r'^```py title="(.*?)"\n(.*?)^```', re.MULTILINE | re.DOTALL)


_spec = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)

LONG = [
    "environment.md",
    "files.md",
    "library.md",
    "migration.md",
    "networks.md",
    "novelty.md",
    "rewards.md",
    "runs.md",
]
APART = [*LONG, TUTORIAL]
SHORT = sorted(
    page.name for page in DOCS.glob("*.md") if page.name not in APART and BLOCK.search(page.read_text())
)


def code(page):
    found = BLOCK.findall((DOCS / page).read_text())
    assert found
    return "\n".join(re.sub(rf"^{indent}", "", part, flags=re.MULTILINE) for indent, part in found)


@pytest.mark.slow("docs")
@pytest.mark.parametrize("page", LONG)
def test_guide_runs(page, tmp_path):
    runs(code(page), tmp_path)


@pytest.mark.parametrize(
    "pages",
    [pytest.param(SHORT, marks=pytest.mark.slow("docs"), id="guides"), pytest.param([README], id="readme")],
)
def test_short_guides_run(pages, tmp_path):
    """Run them in one process, because importing torch takes longer than any of them."""
    texts = [f"exec(compile({code(page)!r}, {page!r}, 'exec'), globals())" for page in pages]
    runs("\n".join(texts), tmp_path)


def test_the_tutorial_runs_with_small_budgets(tmp_path):
    """One process first creates the run that the Python loads; the slow test runs the commands."""
    train = next(line for line in commands("docs/tutorial.md") if line.startswith("escalade train"))
    made = [*shlex.split(train)[1:-1], "runs/lander"]
    begin = f"from escalade.cli.main import main\nassert main({made!r}) == 0\n"
    runs(begin + re.sub(r"generations=\d+", "generations=2", code(TUTORIAL)), tmp_path)


@pytest.mark.slow("docs/tutorial.md")
def test_the_whole_tutorial_runs(tmp_path):
    """Run the commands in order, then the Python with all its generations."""
    lines = commands("docs/tutorial.md")
    assert len(lines) > 5
    for line in lines:
        command = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, (line, done.stderr)
    runs(code(TUTORIAL), tmp_path)


def test_the_extras_that_the_pages_name_exist():
    with (DOCS.parent / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    text = "".join((DOCS.parent / page).read_text() for page in PAGES)
    named = re.findall(r"'(?:escalade|\.)\[([\w,]+)\]'", text)
    assert len(named) > 10
    assert {extra for group in named for extra in group.split(",")} <= set(extras)
    table = re.findall(r"^\| (`.*?) \|", (DOCS / "install.md").read_text(), re.MULTILINE)
    listed = {extra for row in table for extra in re.findall(r"`(\w+)`", row)}
    assert listed == set(extras) - {"all", "dev", "docs", "examples"}


def test_the_extra_all_is_what_its_page_promises():
    with (DOCS.parent / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    (group,) = re.findall(r"escalade\[(.*)\]", extras["all"][0])
    (sentence,) = re.findall(
        r"^`all` is every extra in the table but (.*)\.$", (DOCS / "install.md").read_text(), re.M
    )
    left_out = set(re.findall(r"`(\w+)`", sentence))
    assert set(group.split(",")) == set(extras) - left_out - {"all", "dev", "docs", "examples"}


def test_the_readme_is_short_and_its_links_lead_to_files():
    text = (DOCS / README).read_text()
    assert len(text.splitlines()) <= 115
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert len(links) > 20
    assert all((DOCS.parent / link).exists() for link in links)


def test_the_links_of_the_guides_lead_to_files():
    for page in DOCS.rglob("*.md"):
        links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        assert not [link for link in links if "://" not in link and not (page.parent / link).exists()], page


def test_there_are_at_most_22_guides():
    assert len(list(DOCS.glob("*.md"))) <= 22


def test_excerpts_match_the_files_they_name():
    """Compare line by line at any indentation; ``...`` replaces omitted lines."""
    excerpts = EXCERPT.findall((DOCS / "algorithm.md").read_text())
    assert {"examples/minimal_es.py", "src/escalade/strategies/openai_es.py"} <= {
        name for name, _ in excerpts
    }
    for name, excerpt in excerpts:
        source = (DOCS.parent / name).read_text()
        for part in excerpt.split("...\n"):
            indented = (textwrap.indent(part, " " * depth) for depth in (0, 4, 8, 12))
            assert any(lines in source for lines in indented), f"{name} has no\n{part}"


def test_the_minimal_program_is_shown_whole():
    excerpts = dict(EXCERPT.findall((DOCS / "algorithm.md").read_text()))
    program = (DOCS.parent / "examples" / "minimal_es.py").read_text()
    assert excerpts["examples/minimal_es.py"] == program


def test_the_reference_contains_the_public_names_and_no_whole_module():
    pages = "".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    paths = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    published = list(map(pkgutil.resolve_name, paths))
    assert len(set(published)) == len(published)
    assert not [found for found in published if inspect.ismodule(found)]
    for package in (escalade, escalade.strategies):
        promised = {f"{package.__name__}.{name}" for name in package.__all__}
        assert promised - {"escalade.strategies"} <= set(paths)


def test_the_tables_of_the_guides_match_the_code():
    for path, text in tables.pages().items():
        assert path.read_text() == text, f"run python docs/tables.py: {path.name} is outdated"


def runs(text, folder):
    script = folder / "guide.py"
    script.write_text(text)
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_no_docstring_has_a_section_that_the_reference_cannot_render():
    """The reference renders ``Example:`` as an admonition, whose ``>>>`` become quotes."""
    source = Path(escalade.__file__).parent
    assert not [path for path in source.rglob("*.py") if re.search(r"^ *Example:$", path.read_text(), re.M)]


def test_the_site_is_built_with_links_to_files():
    assert "\nuse_directory_urls: false" in (DOCS.parent / "mkdocs.yml").read_text()
