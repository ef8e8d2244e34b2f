"""The console: plain lines where there is no terminal, a live panel where there is one."""

import io

from escalade.recorders import Goals, Row, make_console
from escalade.recorders.console import LiveConsole, PlainConsole

GOALS = Goals("CartPole-v1: openai-es", target_return=475.0, generations=40, seconds=60.0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def row(generation, evaluation=None, seconds=3.0):
    return Row(
        generation,
        8,
        12345,
        seconds,
        20.5,
        2.5,
        1.0,
        99.0,
        50.0,
        evaluation,
        1,
        0.1,
        0.02,
        0.01,
        4000.0,
        9,
        0,
    )


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


def test_plain_lines_do_not_flood():
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
    for part in ("20 of 40 generations", "275.0 of 475", "[a note] in brackets", GOALS.title):
        assert part in said
    assert console._reached() == 0.5


def test_a_terminal_without_a_generation_closes_quietly():
    console = make_console(GOALS, Terminal())
    console.close()
    assert console._reached() == 0.0


def test_the_budget_shown_is_the_one_nearest_its_end():
    assert GOALS.spent(row(10, seconds=45.0)) == ("45 of 60 s", 0.75)
    assert GOALS.spent(row(38, seconds=45.0)) == ("38 of 40 generations", 0.95)
    assert GOALS.spent(row(99))[1] == 1.0
    assert Goals("t").spent(row(1)) is None
