"""The slow tests of what a change touches: ``make test-touched``, or pytest's ``--touched``.

A test's ``slow`` mark names the files and folders that it is about. Git says which ones a change has touched:
those that differ from the branch's beginning or, on ``main``, from the commit before.
"""

import subprocess
from pathlib import Path

ALWAYS = ("pyproject.toml", "constraints.txt", "tests/conftest.py", "tests/commands.py", "tests/touched.py")
"""Files that all slow tests are about."""


def touched(root):
    """Paths of changed, new and removed files; None where git cannot say, as in a clone of one commit."""
    branched = _git(root, "merge-base", "HEAD", "origin/main")
    before = ["HEAD^"] if branched in (None, _git(root, "rev-parse", "HEAD")) else branched
    changed = _git(root, "diff", "--name-only", "--relative", "--no-renames", before[0], "--")
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    return None if changed is None or new is None else [*changed, *new]


def concerns(item, root, paths):
    """True if a test is to run where ``paths`` were touched: if it is not slow, or about one of them."""
    marks = list(item.iter_markers("slow"))
    named = [about for mark in marks for about in mark.args]
    assert all((root / about).exists() for about in named), (
        f"{item.nodeid} is about a file that is gone: {named}"
    )
    about = [*named, *ALWAYS, item.path.relative_to(root).as_posix()]
    return not marks or any(Path(path).is_relative_to(one) for path in paths for one in about)


def _git(root, *arguments):
    """Lines that git writes; None where it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.splitlines()
