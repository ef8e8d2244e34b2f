"""A slow first generation is reported while it runs and after it; later ones are not."""

import pytest

from escalade.training.limits import Limits, Pace
from escalade.training.progress import Counts, Progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def done(generation, seconds):
    return Progress(generation=generation, updates=Counts(seconds=seconds))


def test_silence_is_broken_at_growing_intervals_until_the_first_generation_ends(clock):
    said = []
    pace = Pace(Limits(), said.append)
    for seconds in (0, 9.9, 10, 11, 39, 40, 100, 160):
        clock[0] = 100.0 + seconds
        pace()
    assert [text.rpartition(" for ")[2] for text in said] == ["10 s", "40 s", "2 min 40 s"]
    pace.ended(done(1, 160.0), 160.0, episodes=True)
    clock[0] += 10**6
    pace()
    assert len(said) == 3


def test_a_budget_of_few_generations_is_pointed_out():
    said = []
    Pace(Limits(seconds=60.0), said.append).ended(done(1, 25.0), 25.0, episodes=True)
    (text,) = said
    assert "takes 25 s" in text
    assert "`seconds=60` allows about 3 generations" in text
    assert all(f"`{option}`" in text for option in ("cutoff", "population", "workers"))
    Pace(Limits(seconds=60.0), said.append).ended(done(1, 25.0), 25.0, episodes=False)
    assert "cutoff" not in said[-1]
    Pace(Limits(seconds=2.0), said.append).ended(done(1, 0.163), 0.163, episodes=False)
    assert "takes 0.16 s" in said[-1]


@pytest.mark.parametrize(
    ("limits", "progress", "seconds"),
    [
        (Limits(), done(1, 500.0), 500.0),
        (Limits(seconds=60.0), done(1, 1.0), 1.0),
        (Limits(seconds=60.0), done(7, 25.0), 25.0),  # resumed: its rows have shown it
    ],
)
def test_nothing_is_said_without_a_budget_with_many_generations_or_when_resumed(limits, progress, seconds):
    said = []
    Pace(limits, said.append).ended(progress, seconds, episodes=True)
    assert not said
