"""A standard output that is full, closed or no longer read."""

import os
import subprocess
import sys

import pytest
from tests.commands import DEADLINE, ROOT

import escalade
from escalade.cli import main as cli

TRAIN = "train CartPole-v1 --preset none --population 4 --workers 0 --generations 1 --run-dir run"


def redirected(line, where, cwd, **variables):
    """The real command with its standard output sent to ``where``, in the shell's words."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    whole = f"exec {sys.executable} -m escalade {line} {where}"
    return subprocess.run(
        ["sh", "-c", whole],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.mark.parametrize("line", ["presets", "--help", "train --help", "--version", TRAIN])
@pytest.mark.parametrize(("where", "says"), [(">/dev/full", "No space left"), (">&-", "is closed")])
def test_one_line_when_nothing_can_be_printed(line, where, says, tmp_path):
    result = redirected(line, where, tmp_path)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("escalade: standard output")
    assert says in result.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_too_where_python_does_not_buffer(unbuffered, tmp_path):
    result = redirected("plot --help", ">/dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)


def test_a_reader_that_goes_away_is_no_news(tmp_path):
    result = redirected("train --help", "| head -1", tmp_path)
    assert result.stderr == ""


def test_notes_name_flags_in_a_command_and_arguments_in_the_library(tmp_path, capsys):
    env, options = "tests.environments:Walk-v0", ["--workers", "0", "--generations", "1", "--population", "4"]
    assert cli.main(["train", env, *options, "--run-dir", str(tmp_path / "c")]) == 0
    assert "no limit of steps: --max-episode-steps ends" in capsys.readouterr().out
    escalade.train(env, workers=0, generations=1, population=4, run_dir=tmp_path / "l")
    assert "no limit of steps: `max_episode_steps` ends" in capsys.readouterr().out
