"""Schedules: values, text form, and rejected input."""

import math

import pytest

from escalade.errors import InputError
from escalade.strategies import schedules
from escalade.strategies.schedules import parse, parse_sigma


def test_schedule_values():
    assert [parse(0.3)(g) for g in (0, 1000)] == [0.3, 0.3]
    assert parse("exponential:2:0.5")(3) == 0.25
    assert parse("exponential:2:0.5:0.7")(30) == 0.7
    assert [parse("linear:1:0:4")(g) for g in (0, 1, 4, 9)] == [1.0, 0.75, 0.0, 0.0]
    cosine = parse("cosine:1:0.2:10")
    assert [cosine(0), cosine(10), cosine(99)] == [1.0, 0.2, 0.2]
    assert cosine(5) == pytest.approx(0.6)
    assert cosine(2) == pytest.approx(0.2 + 0.4 * (1 + math.cos(0.2 * math.pi)))
    assert [parse("step:1:0.1:5")(g) for g in (0, 4, 5, 10)] == [1.0, 1.0, 0.1, pytest.approx(0.01)]


@pytest.mark.parametrize("text", ["exponential:3:2", "step:0.1:1.5:2"])
def test_growing_schedule_is_capped_at_the_largest_number(text):
    schedule = parse(text)
    assert schedule(20) > 5
    values = [schedule(generation) for generation in (1000, 2000, 100_000, 10**9)]
    assert values == sorted(values)
    assert all(type(value) is float and math.isfinite(value) for value in values)


def test_parse_returns_schedules_and_wraps_numbers():
    assert schedules.parse(0.25)(7) == 0.25

    def own(generation):
        return 1.0 / (1 + generation)

    assert [schedules.parse(own)(g) for g in range(5)] == [own(g) for g in range(5)]


@pytest.mark.parametrize(
    "text",
    ["", "fast", "linear", "linear:1:2:3:4", "step:1:0.5:0", "exponential:x:0.9", "0", "nan", "sine:1:2:3"],
)
def test_invalid_text_is_rejected_by_name(text):
    with pytest.raises(InputError, match=r"^lr "):
        schedules.parse(text, "lr")


def test_population_schedules():
    assert schedules.members(7, 99) == 7
    growing = schedules.PopulationSchedule("linear:16:64:48")
    assert [growing.members(generation) for generation in (0, 1, 2, 3, 46, 48, 1000)] == [
        16,
        16,
        18,
        20,
        62,
        64,
        64,
    ]
    assert [
        schedules.PopulationSchedule("step:9:0.1:5").members(generation) for generation in (0, 5, 500)
    ] == [
        8,
        2,
        2,
    ]
    assert schedules.PopulationSchedule("exponential:1e6:10").members(30) == 10**7
    assert schedules.PopulationSchedule("exponential:16:2").members(10_000) == 10**7
    assert schedules.PopulationSchedule("step:16:2:5").members(100_000) == 10**7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("8", "neither a whole number nor one of exponential:START"),
        ("linear:16:64", "neither a number nor one of exponential:START"),
        ("linear:16:1:9", "must stay between 2 and 10000000 members"),
        ("cosine:1:16:9", "must stay between 2 and 10000000 members"),
        ("linear:16:1e8:9", "must stay between 2 and 10000000 members"),
        ("step:1:2:9", "must stay between 2 and 10000000 members"),
        ("exponential:0:2", "must start above 0"),
    ],
)
def test_invalid_populations_are_rejected(text, said):
    with pytest.raises(InputError, match=f"^`population` '{text}'.* {said}"):
        schedules.PopulationSchedule(text)


def test_function_schedule_beyond_float32_is_rejected():
    with pytest.raises(InputError, match=r"lr is 1e\+39 in generation 3 .* at most 1e\+30"):
        parse(lambda generation: 1e39 if generation == 2 else 0.1, "lr")(2)
    with pytest.raises(InputError, match=r"lr is 1000.* in generation 1"):
        parse(lambda generation: 10**400, "lr")(0)


def test_sigma_that_decays_at_once_needs_a_floor():
    assert parse_sigma("exponential:0.1:0:0.01")(5) == 0.01
    with pytest.raises(InputError, match="ends at 0"):
        parse_sigma("exponential:0.1:0:0")
