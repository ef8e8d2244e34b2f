"""A slow first generation is reported while it runs; later ones are not."""

import pytest

from escalade.training.limits import Pace


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_silence_is_broken_at_growing_intervals_until_the_first_generation_ends(clock):
    said = []
    pace = Pace(said.append)
    for seconds in (0, 9.9, 10, 11, 39, 40, 100, 160):
        clock[0] = 100.0 + seconds
        pace()
    assert [text.rpartition(" for ")[2] for text in said] == ["10 s", "40 s", "2 min 40 s"]
    pace.ended()
    clock[0] += 10**6
    pace()
    assert len(said) == 3
