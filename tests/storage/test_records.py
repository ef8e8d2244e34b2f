"""Dataclasses from what a file says: right, or Damaged with the field's name."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import pytest

from escalade.storage.records import LARGEST, record
from escalade.storage.tensors import Damaged


@dataclass(frozen=True)
class Part:
    count: int
    share: float = 0.5


@dataclass
class Whole:
    name: str
    done: bool
    part: Part
    other: Part | None = None
    best: float | None = None
    counts: dict[str, int] = field(default_factory=dict)
    shape: list[int] = field(default_factory=list)


GOOD = Whole("a", True, Part(3, 0.25), None, 1.5, {"b": 2}, [1, 2])


def test_what_asdict_gives_is_read_back():
    assert record(Whole, asdict(GOOD), "state") == GOOD
    assert record(Whole, {"name": "a", "done": False, "part": {"count": 1}}, "s") == Whole(
        "a", False, Part(1)
    )


def test_whole_numbers_do_for_floats_and_stay_what_was_asked_for():
    share = record(Part, {"count": 1, "share": 2}, "s").share
    assert (share, type(share)) == (2.0, float)
    assert math.isnan(record(Part, {"count": 1, "share": math.nan}, "s").share)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "name holds a int"),
        ({"done": 1}, "done holds a int"),
        ({"part": {"count": True}}, "count holds a bool"),
        ({"part": {"count": 1.5}}, "count holds a float"),
        ({"part": {"count": LARGEST + 1}}, "count holds a int"),
        ({"part": {"count": 1, "later": 2}}, "field 'later' that this version does not know"),
        ({"part": {}}, "part has no 'count'"),
        ({"part": [1]}, "part is missing, or not a table"),
        ({"other": "x"}, "other holds a str"),
        ({"best": "1.5"}, "best holds a str"),
        ({"counts": {"a": "b"}}, "counts holds a str"),
        ({"counts": [1]}, "counts holds a list"),
        ({"shape": {"a": 1}}, "shape holds a dict"),
        ({"future": None}, "field 'future'"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    with pytest.raises(Damaged, match=message):
        record(Whole, asdict(GOOD) | change, "state")


@pytest.mark.parametrize("values", [None, [], "text", 3])
def test_what_is_no_table_is_refused(values):
    with pytest.raises(Damaged, match="state is missing, or not a table"):
        record(Whole, values, "state")
