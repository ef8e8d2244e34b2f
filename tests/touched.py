"""Selection of the slow tests that a change affects: ``make test-touched``, or pytest's ``--touched``.

A test's ``slow`` mark lists the files and folders that it covers. The changed files are those that differ
from the start of the branch or, on ``main``, from the previous commit.
"""

import subprocess
from pathlib import Path

ALWAYS = ("pyproject.toml", "constraints.txt", "tests/conftest.py", "tests/commands.py", "tests/touched.py")
"""Files that all slow tests cover."""


def touched(root):
    """Return the paths of changed, new and removed files, or None without git or history."""
    branched = _git(root, "merge-base", "HEAD", "origin/main")
    before = ["HEAD^"] if branched in (None, _git(root, "rev-parse", "HEAD")) else branched
    changed = _git(root, "diff", "--name-only", "--relative", "--no-renames", before[0], "--")
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    return None if changed is None or new is None else [*changed, *new]


def concerns(item, root, paths):
    """Return True if a test is not slow or covers one of ``paths``."""
    marks = list(item.iter_markers("slow"))
    named = [about for mark in marks for about in mark.args]
    assert all((root / about).exists() for about in named), (
        f"{item.nodeid} covers a file that does not exist: {named}"
    )
    about = [*named, *ALWAYS, item.path.relative_to(root).as_posix()]
    return not marks or any(Path(path).is_relative_to(one) for path in paths for one in about)


def _git(root, *arguments):
    """Return the lines printed by git, or None if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.splitlines()
