"""A slow first generation is reported while it runs; later ones are not."""

import pytest

from escalade.training.limits import Limits, Pace
from escalade.training.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_progress_is_reported_at_growing_intervals_during_the_first_generation(clock):
    said = []
    pace = Pace(Limits(), said.append)
    for seconds in (0, 9.9, 10, 11, 39, 40, 100, 160):
        clock[0] = 100.0 + seconds
        pace()
    assert [text.rpartition(" for ")[2] for text in said] == ["10 s", "40 s", "2 min 40 s"]
    pace.ended(Progress(generation=1), 160.0)
    clock[0] += 10**6
    pace()
    assert len(said) == 3


@pytest.mark.parametrize(
    ("budget", "generation", "told"), [(60.0, 1, True), (6000.0, 1, False), (60.0, 7, False)]
)
def test_budget_for_few_generations_is_noted_after_the_first(budget, generation, told):
    said = []
    Pace(Limits(seconds=budget), said.append).ended(Progress(generation=generation), 25.0)
    assert len(said) == told
    assert not told or "takes 25 s, so `seconds=60` allows about 4 of them; fewer members" in said[0]
