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

import escalade
import escalade.strategies
from escalade.cli.main import parse
from escalade.cli.training import config_typed

DOCS = Path(__file__).parent.parent / "docs"
README, TUTORIAL = "../README.md", "tutorial.md"
# Blocks marked ```python; those of other libraries are marked ```py.
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?: {4})+(?:\w+=\S+ )?(escalade (?:.*\\\n)*.*)", re.MULTILINE)
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
PAGES = [README, *sorted(page.name for page in DOCS.glob("*.md"))]
MODULE = """
import gymnasium as gym
import numpy as np

class MyEnv(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(2)

    def __init__(self, difficulty=1):
        self.difficulty = difficulty

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 100
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        self.left -= 1
        return self.reset_observation(), float(action), self.left == 0, False, {}

    def reset_observation(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)
"""


def commands(page):
    """Return the commands of a page's indented blocks as lists of words."""
    found = COMMAND.findall((DOCS / page).read_text())
    return [shlex.split(line.replace("\\\n", " "), comments=True) for line in found]


def code(page):
    found = BLOCK.findall((DOCS / page).read_text())
    assert found
    return "\n".join(re.sub(rf"^{indent}", "", part, flags=re.MULTILINE) for indent, part in found)


@pytest.mark.slow("docs")
@pytest.mark.parametrize("page", LONG)
def test_guide_runs(page, tmp_path):
    runs(code(page), tmp_path)


@pytest.mark.parametrize("pages", [SHORT, [README]], ids=["guides", "readme"])
def test_short_guides_run(pages, tmp_path):
    """Run them in one process, because importing torch takes longer than any of them."""
    texts = [f"exec(compile({code(page)!r}, {page!r}, 'exec'), globals())" for page in pages]
    runs("\n".join(texts), tmp_path)


def test_the_tutorial_runs_with_small_budgets(tmp_path):
    """One process first creates the run that the Python loads; the slow test runs the commands."""
    train = next(words for words in commands(TUTORIAL) if words[1] == "train")
    made = ["train", *train[2:-1], "runs/lander"]
    begin = f"from escalade.cli.main import main\nassert main({made!r}) == 0\n"
    runs(begin + re.sub(r"generations=\d+", "generations=2", code(TUTORIAL)), tmp_path)


@pytest.mark.slow("README.md", "docs/tutorial.md")
@pytest.mark.parametrize("page", [README, TUTORIAL])
def test_the_commands_of_a_page_run(page, tmp_path):
    """Run the commands in order, then the tutorial's Python with all its generations."""
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "my_module.py").write_text(MODULE)
    assert len(commands(page)) > 5
    for words in commands(page):
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, (words, done.stderr)
    if page == TUTORIAL:
        runs(code(page), tmp_path)


def test_the_extras_that_the_readme_installs_exist():
    with (DOCS.parent / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    named = re.findall(r"pip install '\.\[(\w+)\]' -c (\S+)", (DOCS / README).read_text())
    assert len(named) == 1
    assert all(extra in extras and (DOCS.parent / pins).exists() for extra, pins in named)


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


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_guides_have_valid_options(page):
    for line in COMMAND.findall((DOCS / page).read_text()):
        words = shlex.split(line.replace("\\\n", " "), comments=True)[1:]
        parsed = parse(words)
        if words[0] == "train" and "--config" not in words and "…" not in line:  # without files of the reader
            config_typed(parsed)


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


def test_docstrings_have_examples_in_a_section_that_the_reference_knows():
    """The reference renders ``Example:`` as an admonition, whose ``>>>`` become quotes."""
    source = Path(escalade.__file__).parent
    assert not [path for path in source.rglob("*.py") if re.search(r"^ *Example:$", path.read_text(), re.M)]


def test_links_of_the_built_pages_work_in_files():
    assert "\nuse_directory_urls: false" in (DOCS.parent / "mkdocs.yml").read_text()
