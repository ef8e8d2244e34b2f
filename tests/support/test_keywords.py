"""The arguments that a function or a class accepts, including those passed on to its bases."""

from functools import partial

import pytest

from escalade.support.keywords import keywords_of, signature_of


class Base:
    def __init__(self, x0, *, seed=0, shaping="ranks"):
        pass


class Plain(Base):
    pass


class Further(Plain):
    def __init__(self, x0, rate=1.0, **keywords):
        super().__init__(x0, **keywords)


class Last(Further):
    def __init__(self, *given, shaping="raw", **keywords):
        super().__init__(*given, shaping=shaping, **keywords)


class Closed(Further):
    def __init__(self, x0, rate=2.0):
        super().__init__(x0, rate)


def handing_on(x0, **keywords):
    pass


def test_a_function_with_var_keywords_accepts_any_name():
    assert keywords_of(handing_on) is keywords_of(partial(handing_on, seed=3)) is None


@pytest.mark.parametrize(
    ("given", "defaults"),
    [
        (Plain, {"seed": 0, "shaping": "ranks"}),
        (Further, {"rate": 1.0, "seed": 0, "shaping": "ranks"}),
        (Last, {"shaping": "raw", "rate": 1.0, "seed": 0}),
        (Closed, {"rate": 2.0}),
    ],
)
def test_a_default_comes_from_the_first_class_that_defines_it(given, defaults):
    parts = signature_of(given).parameters
    assert {name: part.default for name, part in parts.items() if part.default is not part.empty} == defaults
