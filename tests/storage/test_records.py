"""Dataclasses from what a file says: right, or Damaged with the field's name."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import numpy as np
import pytest

from escalade.storage.records import LARGEST, Count, Numbers, check_arrays, record
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
    waited: Count | None = None


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
        ({"other": "x"}, "other is missing, or not a table"),
        ({"best": "1.5"}, "best holds a str"),
        ({"counts": {"a": "b"}}, "counts holds a str"),
        ({"counts": [1]}, "counts holds a list"),
        ({"shape": {"a": 1}}, "shape holds a dict"),
        ({"waited": -1}, "waited is -1, below 0"),
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


SCHEMA = {
    "center": Numbers("float32", ("size",)),
    "squares": Numbers("float64", ("size", 2), least=0),
    "history": Numbers("float64", ("rows",), finite=False),
}
ARRAYS = {
    "center": np.ones(3, np.float32),
    "squares": np.zeros((3, 2)),
    "history": np.array([np.nan, 1.0]),
    "beside": np.array(np.inf),
}


def test_arrays_of_the_schema_give_the_sizes_that_it_names():
    assert check_arrays(ARRAYS, SCHEMA, "s") == {"size": 3, "rows": 2}
    check_arrays({"one": np.float64(1)}, {"one": Numbers.like(np.array(2.0))}, "s")


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("center", None, "s has no center"),
        ("center", np.ones(3), r"center is float64 of shape \(3,\), not float32 of \(3,\)"),
        ("center", np.full(3, np.nan, np.float32), "center is not finite"),
        ("squares", np.zeros((4, 2)), r"squares is float64 of shape \(4, 2\), not float64 of \(3, 2\)"),
        ("squares", np.zeros(3), r"of shape \(3,\), not float64 of \(3, 2\)"),
        ("squares", np.zeros((3, 2, 1)), r"of shape \(3, 2, 1\)"),
        ("squares", np.full((3, 2), -1.0), "squares is below 0"),
        ("history", np.array(1.0), r"of shape \(\)"),
    ],
)
def test_arrays_that_are_others_are_named(name, array, message):
    arrays = {key: value for key, value in (ARRAYS | {name: array}).items() if value is not None}
    with pytest.raises(Damaged, match=message):
        check_arrays(arrays, SCHEMA, "s")


def test_a_size_that_is_known_must_be_met():
    with pytest.raises(Damaged, match=r"center is float32 of shape \(3,\), not float32 of \(4,\)"):
        check_arrays(ARRAYS, SCHEMA, "s", size=4)
