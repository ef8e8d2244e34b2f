"""Declared limits of options: each keyword of a declaration rejects invalid values only."""

from dataclasses import dataclass, fields

import pytest

from escalade import InputError
from escalade.config.declared import check_declared, option, readers_of
from escalade.support.registry import Entry

TOOLS = {
    "saw": Entry("Saw", "tools:Saw", options=frozenset({"teeth"})),
    "drill": Entry("Drill", "tools:Drill", options=frozenset({"speed"})),
    "tape": Entry("Tape", "tools:Tape"),
}


def refuse_odd(holes):
    if any(hole % 2 for hole in holes):
        raise InputError("an odd hole")


@dataclass
class Work:
    tool: str = option("work", "tape", "what is used", choices=TOOLS, own="package.module:Tool")
    teeth: int = option("work", 8, "of a saw", min=2, max=100)
    speed: float | None = option("work", None, "of a drill", above=0, below=1000)
    cuts: tuple[int, ...] = option("work", (), "lengths", min=1)
    finish: str = option("work", "raw", "the surface", choices=("raw", "fine"))
    holes: tuple[int, ...] = option("work", (), "places", lengths=(0, 2), check=refuse_odd)

    def __post_init__(self):
        check_declared({field.name: field for field in fields(self)}, vars(self))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tool": "swa"}, "^unknown `tool` 'swa'; did you mean saw"),
        ({"tool": "hammer"}, "'hammer': it must be one of saw, drill, tape, or package.module:Tool$"),
        ({"tool": "saw", "teeth": 1}, "^`teeth` 1 must be at least 2$"),
        ({"tool": "saw", "teeth": 101}, "^`teeth` 101 must be at most 100$"),
        ({"tool": "drill", "speed": 0.0}, "^`speed` 0.0 must be above 0$"),
        ({"tool": "drill", "speed": 1000.0}, "^`speed` 1000.0 must be below 1000$"),
        ({"tool": "drill", "speed": float("inf")}, "^`speed` inf must be a finite number$"),
        ({"cuts": (4, 0)}, "^`cuts` 4,0 must be at least 1$"),
        ({"finish": "rough"}, "unknown `finish` 'rough'"),
        ({"holes": (2, 4, 6)}, "^`holes` 2,4,6 must be 2 whole numbers$"),
        ({"holes": (2, 5)}, "^an odd hole$"),
        (
            {"tool": "drill", "teeth": 4},
            r"^`teeth` has no effect with `tool` drill; remove it \(it is for saw\)",
        ),
    ],
)
def test_values_outside_the_declaration_are_refused_in_one_line(values, message):
    with pytest.raises(InputError, match=message):
        Work(**values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"tool": "saw", "teeth": 2},
        {"tool": "saw", "teeth": 100},
        {"tool": "drill", "teeth": 8},  # a default does not count as set
        {"tool": "shop.tools:Mine", "teeth": 4, "speed": 3.0},  # user code may read any option
        {"cuts": (1, 2), "finish": "fine", "holes": (2, 4)},
    ],
)
def test_values_within_the_declaration_are_accepted(values):
    Work(**values)


def test_entries_name_the_readers_of_an_option():
    tool, *others = fields(Work)
    assert readers_of(tool) == {"teeth": ["saw"], "speed": ["drill"]}
    assert not any(map(readers_of, others))
