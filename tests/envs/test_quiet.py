"""Console output is suppressed in the block and restored afterwards, even if a descriptor is closed."""

import subprocess
import sys

import pytest

SCRIPT = """
import os
from escalade.envs.process import quiet
def write(words):
    for fd in (1, 2):
        try:
            os.write(fd, words)
        except OSError:
            pass
write(b"before ")
with quiet():
    write(b"within ")
write(b"after")
"""


@pytest.mark.parametrize(
    ("closed", "out", "err"),
    [("", "before after", "before after"), ("2>&-", "before after", ""), (">&-", "", "before after")],
)
def test_output_continues_afterwards(closed, out, err):
    line = f'exec "$0" -c "$1" {closed}'
    command = ["sh", "-c", line, sys.executable, SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (out, err)
