"""A standard output that is full, closed or no longer read."""

import io
import os
import re
import subprocess
import sys

import pytest
from tests.commands import DEADLINE, ROOT

import escalade
from escalade.cli import main as cli
from escalade.recorders import Goals
from escalade.recorders.console import PlainConsole
from escalade.support.output import print_line

TRAIN = "train CartPole-v1 --preset none --population 4 --workers 0 --generations 1 --run-dir run"


def redirected(line, where, cwd, **variables):
    """Run the real command with its standard output redirected to ``where``, in shell syntax."""
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
def test_unwritable_standard_output_is_reported_in_one_line(line, where, says, tmp_path):
    result = redirected(line, where, tmp_path)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("escalade: standard output")
    assert says in result.stderr


def test_a_closed_pipe_is_silent(tmp_path):
    result = redirected("train --help", "| head -1", tmp_path)
    assert result.stderr == ""


def test_a_run_whose_output_pipe_closes_ends_silently(tmp_path):
    read, write = os.pipe()
    os.close(read)
    line = [sys.executable, "-m", "escalade", *TRAIN.split()]
    result = subprocess.run(line, check=False, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (result.returncode, result.stderr) == (1, b"")


class Broken:
    """A recorder whose own pipe is broken."""

    def __init__(self, run):
        pass

    def generation(self, row):
        raise BrokenPipeError("the dashboard is gone")

    def note(self, text):
        pass

    def close(self):
        pass


def test_a_broken_pipe_in_a_recorder_is_raised(tmp_path):
    typed = [*TRAIN.split()[:-1], str(tmp_path / "run"), "--recorder", f"{__name__}:Broken"]
    with pytest.raises(BrokenPipeError, match="the dashboard is gone"):
        cli.main(typed)


def test_notes_name_flags_in_a_command_and_arguments_in_the_library(tmp_path, capsys):
    env, options = (
        "tests.environments:Stuck-v0",
        ["--workers", "0", "--generations", "1", "--population", "4"],
    )
    assert cli.main(["train", env, *options, "--run-dir", str(tmp_path / "c")]) == 0
    assert "evaluations --max-episode-steps 5000" in capsys.readouterr().out
    escalade.train(env, workers=0, generations=1, population=4, run_dir=tmp_path / "l")
    assert "evaluations `max_episode_steps=5000`" in capsys.readouterr().out


NASTY = "a\x1b[2J\x1b]0;title\x07b\rc\x9b1m\u202ed"
SHOWN = r"a\x1b[2J\x1b]0;title\x07b\rc\x9b1m\u202ed"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def test_names_from_users_are_printed_without_control_sequences(tmp_path, capsys):
    run = tmp_path / NASTY
    options = ["--workers", "0", "--generations", "1", "--population", "4", "--max-episode-steps", "5"]
    assert cli.main(["train", "tests.environments:Walk-v0", *options, "--run-dir", str(run)]) == 0
    for line in (["watch", str(run), "--once"], ["resume", str(run)], ["compare", str(run)]):
        cli.main(line)
    cli.main(["eval", str(tmp_path / f"no-{NASTY}")])
    cli.main(["train", NASTY])
    out, err = capsys.readouterr()
    assert not RAW.search(out)
    assert not RAW.search(err)
    assert f"run folder: {tmp_path / SHOWN}" in out
    assert r"no-a\x1b[2J\x1b]0;title\x07b c" in err


def test_the_library_prints_to_a_stream_that_cannot_encode_unicode(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    print_line("5 ± 1 …")
    PlainConsole(Goals("5 ± 1 …"), sys.stdout).note("5 ± 1 …")
    assert raw.getvalue() == 3 * b"5 \xb1 1 ?\n"
