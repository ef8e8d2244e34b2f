"""The console is silent meanwhile and heard again afterwards, also where it is closed."""

import subprocess
import sys

import pytest

SCRIPT = """
import os
from escalade.envs.process import quiet
def say(words):
    for fd in (1, 2):
        try:
            os.write(fd, words)
        except OSError:
            pass
say(b"before ")
with quiet():
    say(b"within ")
say(b"after")
"""


@pytest.mark.parametrize(
    ("closed", "out", "err"),
    [("", "before after", "before after"), ("2>&-", "before after", ""), (">&-", "", "before after")],
)
def test_output_goes_on_where_it_went(closed, out, err):
    line = f'exec "$0" -c "$1" {closed}'
    command = ["sh", "-c", line, sys.executable, SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (out, err)
