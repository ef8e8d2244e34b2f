"""Selection of slow tests by changed files: see tests/touched.py."""

import os
import shutil
import subprocess

import pytest
from tests.commands import ROOT
from tests.touched import concerns, touched

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """Ignore the git settings of this machine, and a repository around the tests' folder."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    who = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    apart = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(tmp_path),
    }
    for name, value in (who | apart).items():
        monkeypatch.setenv(name, value)


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder, name):
    (folder / name).write_text(name)
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", name)


@pytest.fixture
def main(tmp_path):
    """A repository with three commits on main, each with one file."""
    folder = tmp_path / "main"
    git(tmp_path, "init", "-q", "-b", "main", folder)
    for name in ("one", "two", "three"):
        commit(folder, name)
    return folder


def test_on_main_the_last_commit_and_uncommitted_changes_count(main):
    assert touched(main) == ["three"]
    (main / "one").write_text("changed")
    (main / "two").unlink()
    (main / "new").touch()
    assert touched(main) == ["one", "three", "two", "new"]


def test_on_a_branch_all_its_commits_count(main, tmp_path):
    git(tmp_path, "clone", "-q", main, "clone")
    git(tmp_path / "clone", "switch", "-q", "-c", "branch")
    for name in ("four", "five"):
        commit(tmp_path / "clone", name)
    commit(main, "six")
    git(tmp_path / "clone", "fetch", "-q")
    assert touched(tmp_path / "clone") == ["five", "four"]


def test_touched_returns_none_without_history(main, tmp_path):
    for depth, found in (("1", None), ("2", ["three"])):
        git(tmp_path, "clone", "-q", "--depth", depth, main.as_uri(), depth)
        assert touched(tmp_path / depth) == found
    (tmp_path / "packed").mkdir()
    assert touched(tmp_path / "packed") is None


def test_a_slow_test_runs_if_a_file_it_covers_was_touched(request):
    assert concerns(request.node, ROOT, [])
    request.node.add_marker(pytest.mark.slow("examples", "src/escalade/wings"))
    found = {
        path: concerns(request.node, ROOT, ["README.md", path])
        for path in (
            "examples/train.ipynb",
            "src/escalade/wings/cluster/ray/actor.py",
            "tests/test_touched.py",
        )
    }
    assert found == dict.fromkeys(found, True)
    assert concerns(request.node, ROOT, ["constraints.txt"])
    assert not concerns(request.node, ROOT, ["README.md", "src/escalade/engines2.py", "examples2/a"])
    request.node.add_marker(pytest.mark.slow("no/such/file"))
    with pytest.raises(AssertionError, match="does not exist"):
        concerns(request.node, ROOT, [])
