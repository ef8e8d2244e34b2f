"""Wrappers are named in text: read without running it, found, and put around the environment."""

import numpy as np
import pytest

from escalade import InputError, check
from escalade.envs import resolve, settle_backend, vectorize
from escalade.envs.wrapping import parse

OFFSET = "tests.environments:Offset"


@pytest.mark.parametrize(
    ("text", "arguments", "keywords"),
    [
        ("a.b:C", (), {}),
        ("a:C()", (), {}),
        ("a:C(1, 'x')", (1, "x"), {}),
        ("a:C(x=-1.5, y=[1, (2,)], z={'k': None})", (), {"x": -1.5, "y": [1, (2,)], "z": {"k": None}}),
        (" a:C( b=True ) ", (), {"b": True}),
    ],
)
def test_text_is_read(text, arguments, keywords):
    call = parse(text)
    assert (call.arguments, call.keywords) == (arguments, keywords)
    assert (call.text, call.home.partition(":")[2]) == (text, "C")


BAD = ["", "a", "a:", ":C", "a b:C", "a:C.d", "a:C()()", "a:C(", "a:C; d", "a:C(x)", "a:C(f())", "a:C(1+x)"]
BAD += ["a:C(**{'x': 1})", "a:C(*[1])", "a:lambda: 1", "a:C(x=open('y'))", "a:\0", "a:C(" + "[" * 1500]
BAD += ["a:" + "C" * 3000, "a:C(" + "9" * 1990 + ")[", "__import__('os'):C", "a:C(x=__import__('os'))"]


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_anything_else_is_refused_in_one_line(text):
    with pytest.raises(InputError, match=r"^`wrappers` ") as raised:
        parse(text)
    assert "\n" not in str(raised.value).replace(text, "")


def first_observation(environment):
    return vectorize(environment, 1).reset(np.array([0]), np.array([5]))[0]


def test_the_first_wrapper_is_nearest_to_the_environment():
    plain = first_observation(resolve("tests.environments:Walk-v0"))
    both = resolve("tests.environments:Walk-v0", wrappers=[f"{OFFSET}(by=1)", f"{OFFSET}(0.0, times=3)"])
    np.testing.assert_allclose(first_observation(both), (plain + 1) * 3)


def test_spaces_are_those_of_the_wrapped_environment():
    wrapped = resolve("CartPole-v1", wrappers=["gymnasium.wrappers:TimeAwareObservation"])
    assert wrapped.observation_space.shape == (5,)
    assert settle_backend(wrapped).backend == "gymnasium"


@pytest.mark.parametrize(
    ("wrapper", "said"),
    [
        ("no_such_package:W", "module no_such_package cannot be imported"),
        ("tests.environments:Ofset", "has no Ofset; did you mean Offset"),
        ("tests.environments:OBSERVATIONS", "has no OBSERVATIONS"),
        (f"{OFFSET}(to=1)", "cannot wrap the environment: TypeError"),
        ("builtins:str", "made a str, not a gymnasium.Env"),
        ("sys:exit", "`wrappers` sys:exit cannot wrap the environment: SystemExit: <"),
        ("gymnasium.wrappers:RescaleAction(0, 1)", "cannot wrap the environment: TypeError: RescaleAction"),
    ],
)
def test_a_wrapper_that_does_not_fit_is_one_line(wrapper, said):
    with pytest.raises(InputError, match=said) as raised:
        resolve("CartPole-v1", wrappers=[wrapper])
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("env", "name", "value"),
    [
        ("CartPole-v1", "wrappers", ["gymnasium.wrappers:TimeAwareObservation"]),
        ("Hopper-v5", "reward_info", "reward_forward"),
    ],
)
def test_a_backend_without_gymnasiums_objects_is_refused(env, name, value):
    environment = resolve(env, backend="envpool", **{name: value})
    with pytest.raises(InputError, match=rf"^`{name}` cannot work on EnvPool: use `backend=gymnasium`$"):
        settle_backend(environment)


@pytest.mark.parametrize("key", ["nothing", "name"])
def test_info_must_have_the_number_that_is_asked_for(key):
    with pytest.raises(InputError, match=f"^`reward_info` {key}: a step's info "):
        resolve("tests.environments:Informs-v0", reward_info=key)


def test_check_looks_at_the_wrapped_environment():
    report = check("CartPole-v1", wrappers=["gymnasium.wrappers:TimeAwareObservation"])
    assert report.ok
    assert report.backend == "gymnasium"
    assert next(found for found in report.findings if found.name == "spaces").detail.startswith("5 numbers")
