"""The commands of the README and the guides run, page by page, in their order, as if typed by a reader."""

import re
import shlex
import subprocess
import sys

import pytest
from tests.commands import parsers
from tests.guides import CUTS, NOT_RUN, PAGES, ROOT, WORDS, blocks, commands, is_run, made_concrete

from escalade.cli.main import main, parse
from escalade.cli.training import config_typed

ENVIRONMENT = """
import gymnasium as gym
import numpy as np

class MyEnv(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(2)

    def __init__(self, difficulty=1):
        self.difficulty = difficulty

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 100
        return self.observation(), {}

    def step(self, action):
        self.left -= 1
        return self.observation(), float(action), self.left == 0, False, {}

    def observation(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)
"""

REGISTERED = """
import gymnasium
gymnasium.register("MyEnv-v0", "my_package.my_module:MyEnv")
"""

SWEEP = """
trials = 10

[options]
env = "LunarLander-v3"
generations = 1

[space]
sigma = {low = 0.01, high = 1.0, log = true}
"""

# Pages whose commands take a few seconds altogether.
FAST = (
    "docs/devices.md",
    "docs/environment.md",
    "docs/extending/recorder.md",
    "docs/index.md",
    "docs/reproducibility.md",
    "docs/rewards.md",
    "docs/tutorial.md",
)

# Commands that make the runs with which a page begins.
BEFORE = {
    "docs/files.md": ["escalade train HalfCheetah-v5"],
    "docs/watching.md": ["escalade sweep poles.toml", "escalade train CartPole-v1"],
}


def files():
    """Return the files that a reader of the pages has, by path: those of the pages, and others like them."""
    thermostats, _ = blocks("docs/devices.md", "python")[0].split("\n\nrun = ")
    (lines,) = (block for block in blocks("docs/watching.md", "py") if "class Lines" in block)
    own = f"{ENVIRONMENT}\n{thermostats}\nmake_world = Thermostats\n{lines}"
    adam, poles, *_ = blocks("docs/runs.md", "toml")
    return {
        "my_module.py": own,
        "my_package/__init__.py": REGISTERED,
        "my_package/my_module.py": own,
        "my_package/thermostat.py": blocks("docs/environment.md", "python")[0],
        "package/module.py": blocks("docs/extending/recorder.md", "python")[0],
        "adam.toml": adam,
        "sgd.toml": adam.replace("openai-es", "openai-es:optimizer=sgd"),
        "poles.toml": poles,
        "lunar.toml": SWEEP,
    }


def runnable(fast):
    pages = (page for page in PAGES if any(map(is_run, commands(page))))
    return [page for page in pages if (page in FAST) == fast]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder of a reader. All have the same files, because a process imports a module once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for path, text in files().items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize("page", runnable(fast=True))
def test_the_commands_of_a_short_page_run(page, folder):
    run(page, folder)


@pytest.mark.slow("docs", "README.md", "tests/guides.py")
@pytest.mark.parametrize("page", runnable(fast=False))
def test_the_commands_of_a_long_page_run(page, folder):
    run(page, folder)


@pytest.mark.parametrize("page", list(filter(commands, PAGES)))
def test_the_commands_have_valid_options(page):
    """Check the commands that are not run too, and those in quotes behind ``ray exec``."""
    for line in commands(page):
        _, found, rest = line.partition("escalade ")
        if not found or "..." in line:
            continue
        words = shlex.split(rest.removesuffix("'") if line.startswith("ray ") else rest)
        parsed = parse([WORDS.get(word, word) for word in words])
        if words[0] == "train" and "--config" not in words and "…" not in line:
            config_typed(parsed)


def test_the_commands_named_in_text_exist():
    named = {
        name for page in PAGES for name in re.findall(r"`escalade ([\w-]+)[ `]", (ROOT / page).read_text())
    }
    assert len(named) > 10
    assert named <= set(parsers())


def test_every_entry_of_the_tables_of_commands_is_in_use():
    lines = [line for page in PAGES for line in commands(page)]
    for beginning in (one for group in NOT_RUN.values() for one in group):
        assert any(line.startswith(beginning) for line in lines), f"no page has {beginning}"
    for beginning in CUTS:
        assert any(f"{line} ".partition(" ")[2].startswith(beginning) for line in lines), beginning
    for word in WORDS:
        assert any(word in shlex.split(line) for line in lines), word
    assert {*FAST, *BEFORE} <= {*runnable(fast=True), *runnable(fast=False)}


def test_the_scripts_that_the_pages_run_exist():
    lines = [line for page in PAGES for line in commands(page) if line.startswith("python ")]
    assert lines
    assert all((ROOT / line.split()[1]).is_file() for line in lines)


def run(page, folder):
    """Run the commands of a page in its order."""
    for line in [*BEFORE.get(page, []), *commands(page)]:
        if is_run(line):
            program, *words = made_concrete(line, folder)
            if program == "python":
                done = subprocess.run([sys.executable, ROOT / words[0], *words[1:]], check=False, timeout=300)
                code = done.returncode
            else:
                assert program == "escalade"
                code = main(words)
            assert code == 0, f"{line}, run as {shlex.join(words)}"
