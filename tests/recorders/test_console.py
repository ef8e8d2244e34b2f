"""The console: a live panel in a terminal, otherwise plain lines."""

import io
import os
import re
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

import escalade
from escalade.recorders import Goals, Row, make_console
from escalade.recorders.console import PlainConsole
from escalade.recorders.goals import duration
from escalade.wings.screens.live import LiveConsole

GOALS = Goals("CartPole-v1: openai-es", target_return=475.0, generations=40, seconds=60.0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def row(generation, evaluation=None, seconds=3.0):
    returns = (20.5, 2.5, 1.0, 99.0)
    return Row(generation, 8, 12345, seconds, *returns, 50.0, evaluation, 1, 0.1, 0.02, 0.01, 4000.0, 9, 0)


def test_without_a_terminal_lines_are_plain():
    stream = io.StringIO()
    console = make_console(GOALS, stream)
    assert isinstance(console, PlainConsole)
    console.generation(row(1, 17.25))
    console.note("checkpoint damaged")
    console.close()
    said = stream.getvalue()
    assert "\x1b" not in said
    assert "\r" not in said
    title, line, note = said.splitlines()
    assert title == GOALS.title
    for part in ("generation 1", "12,345 steps", "return 20.5", "evaluation 17.25", "4,000 steps/s"):
        assert part in line
    assert note == "checkpoint damaged"


def test_numbers_of_infos_are_shown():
    info = (("is_success_mean", 0.25), ("eval_is_success_mean", 0.5), ("speed_mean", None))
    for stream in (io.StringIO(), Terminal()):
        console = make_console(GOALS, stream)
        console.generation(replace(row(1, 17.25), info=info))
        console.close()
        said = stream.getvalue()
        assert "is_success 0.25" in said
        assert "eval_is_success 0.5" in said
        assert "speed" not in said


def test_plain_lines_are_limited_in_rate():
    stream = io.StringIO()
    console = make_console(GOALS, stream)
    for generation in range(500):
        console.generation(row(generation))
    assert len(stream.getvalue().splitlines()) < 50
    console.generation(row(501, 5.0))
    assert "generation 501" in stream.getvalue()


def test_on_a_terminal_a_panel_shows_progress_to_budget_and_target():
    stream = Terminal()
    console = make_console(GOALS, stream)
    assert isinstance(console, LiveConsole)
    console.generation(row(1, 75.0))
    console.note("[a note] in brackets")
    console.generation(row(20, 275.0))
    console.close()
    said = stream.getvalue()
    assert "\x1b" in said
    for part in ("20 of 40 generations", "of 475", "[a note] in brackets", GOALS.title):
        assert part in said


def test_control_sequences_and_markup_of_others_are_shown_as_they_are():
    for stream in (io.StringIO(), Terminal()):
        console = make_console(Goals("name\x1b]0;x\x07 [red]", generations=2), stream)
        console.generation(row(1))
        console.note("stopped\x9b2J\rby it")
        console.close()
        said = stream.getvalue()
        assert r"name\x1b]0;x\x07 [red]" in said
        assert r"stopped\x9b2J\rby it" in said


@pytest.mark.parametrize(
    ("generation", "seconds", "shown"),
    [(10, 45.0, "45 of 60 s"), (38, 45.0, "38 of 40 generations"), (99, 3.0, "99 of 40 generations")],
)
def test_the_budget_shown_is_the_one_nearest_its_end(generation, seconds, shown):
    stream = Terminal()
    console = make_console(GOALS, stream)
    console.generation(row(generation, seconds=seconds))
    console.close()
    assert shown in stream.getvalue()


@pytest.mark.parametrize(
    ("goals", "left"),
    [
        (Goals("t", seconds=60.0), 40.0),
        (Goals("t", generations=100), 180.0),  # 10 of them took 20 s
        (Goals("t", env_steps=4000), 60.0),  # 1000 of them did
        (Goals("t", generations=100, env_steps=4000, seconds=70.0), 50.0),
        (Goals("t", target_return=475.0), None),
    ],
)
def test_the_time_left_is_that_of_the_budget_that_ends_first(goals, left):
    found = goals.seconds_left(replace(row(10, seconds=20.0), env_steps=1000))
    assert found == (left if left is None else pytest.approx(left))


def test_the_pace_before_a_resume_does_not_count():
    goals, before = Goals("t", generations=100), row(10, seconds=1000.0)
    assert goals.seconds_left(before, before) is None
    assert goals.seconds_left(row(12, seconds=1004.0), before) == pytest.approx(176)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(59.4, "59 s"), (200, "3 min 20 s"), (90000, "1 d 1 h")],
)
def test_durations_are_in_their_two_largest_units(seconds, words):
    assert duration(seconds) == words


def test_a_resumed_run_shows_its_last_evaluation():
    stream = Terminal()
    console = make_console(Goals("t"), stream, [row(1, 75.0), row(2), row(3, 100.0), row(4)])
    console.generation(row(5))
    console.close()
    assert re.search(r"evaluation \S*100\b", stream.getvalue())


def test_a_program_without_a_console_trains_in_silence(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    options = {"preset": None, "population": 4, "generations": 1, "workers": 0}
    run = escalade.train("CartPole-v1", run_dir=str(tmp_path / "run"), **options)
    assert run.summary["generations"] == 1
    assert len(escalade.evaluate(run, episodes=2, workers=0).returns) == 2


def test_a_run_continues_after_its_terminal_closes(tmp_path, monkeypatch):
    ours, theirs = os.openpty()
    written = []

    def hang_up(view):
        if view.row.generation == 2:
            written.append(os.read(ours, 10_000))
            os.close(ours)

    terminal = os.fdopen(theirs, "w")
    monkeypatch.setattr(sys, "stdout", terminal)
    options = {"preset": None, "population": 4, "workers": 0, "generations": 4, "callbacks": [hang_up]}
    run = escalade.train("CartPole-v1", run_dir=tmp_path / "run", **options)
    with pytest.raises(OSError, match="error"):
        os.write(theirs, b"nobody is there")
    with suppress(OSError):  # it holds what could not be written
        terminal.close()
    assert b"generation" in written[0]
    assert run.summary["generations"] == 4
    assert (tmp_path / "run" / "curve.png").is_file()
