"""Wrappers as text: parsing without evaluation, import and application."""

import gymnasium
import numpy as np
import pytest

from escalade import InputError
from escalade.envs import resolve, settle_backend, vectorize
from escalade.envs.pixels.frames import Frames
from escalade.envs.wrapping import parse

OFFSET = "tests.environments:Offset"
HERE = "tests.envs.test_wrapping"


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


@pytest.mark.parametrize(
    ("text", "array"),
    [
        ("a:C(np.array([0.25, 0.75]))", np.array([0.25, 0.75])),
        ("a:C(weight=numpy.array([[1], [2]]))", np.array([[1], [2]])),
        ("a:C(weight=np.array((1, 2), dtype='float32'))", np.array([1, 2], np.float32)),
    ],
)
def test_an_argument_may_be_an_array(text, array):
    call = parse(text)
    (found,) = (*call.arguments, *call.keywords.values())
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


def test_an_array_reaches_the_wrapper(tmp_path):
    """MO-Gymnasium's LinearReward reads the shape of its weight."""
    step = np.zeros((1, 1), np.float32)
    weighed = []
    for wrapper in (f"{HERE}:Weighs(weight=np.array([0.25, 0.5]))", f"{HERE}:weigh"):
        vector = vectorize(resolve("tests.environments:Pays-v0", {"form": "two"}, wrappers=[wrapper]), 1)
        vector.reset(np.array([0]), np.array([5]))
        weighed.append(vector.step(np.array([0]), step)[1])
    vector = vectorize(resolve("tests.environments:Walk-v0", {"end": "truncated", "length": 8}), 1)
    vector.reset(np.array([0]), np.array([5]))
    plain = vector.step(np.array([0]), step)[1]
    np.testing.assert_allclose(weighed, [0.75 * plain, 0.75 * plain])


class Weighs(gymnasium.Wrapper):
    def __init__(self, env, weight):
        super().__init__(env)
        assert weight.shape == (2,)
        self.weight = weight

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        return observation, float(self.weight @ reward), *rest


def weigh(env):
    return Weighs(env, np.array([0.25, 0.5]))


BAD = ["", "a", "a:", ":C", "a b:C", "a:C.d", "a:C()()", "a:C(", "a:C; d", "a:C(x)", "a:C(f())", "a:C(1+x)"]
BAD += ["a:C(*[1])", "a:C(**{'x': 1})", "a:lambda: 1", "a:C(x=open('y'))", "a:\0"]
BAD += [
    "a:C(np.array(x))",
    "a:C(np.array([1], copy=False))",
    "a:C(np.array([1], dtype='word'))",
    "a:C(np.pi)",
]
BAD += ["a:C(np.array([[1], [2, 3]]))", "a:C(np.array())", "a:C(np.array([1], **{'dtype': 'int8'}))"]
BAD += ["__import__('os'):C", "a:C(x=__import__('os'))"]


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_invalid_wrappers_raise_one_line(text):
    with pytest.raises(InputError, match=r"^`wrappers` ") as raised:
        parse(text)
    assert "\n" not in str(raised.value).replace(text, "")


def first_observation(environment):
    return vectorize(environment, 1).reset(np.array([0]), np.array([5]))[0]


def test_the_first_wrapper_is_nearest_to_the_environment():
    plain = first_observation(resolve("tests.environments:Walk-v0"))
    both = resolve("tests.environments:Walk-v0", wrappers=[f"{OFFSET}(by=1)", f"{OFFSET}(0.0, times=3)"])
    np.testing.assert_allclose(first_observation(both), (plain + 1) * 3)


class Dark(gymnasium.ObservationWrapper):
    """Halves the brightness of images."""

    def observation(self, observation):
        return observation // 2


@pytest.mark.parametrize("frames", [{"grayscale": True}, {"frame_skip": 3}, {"noop_max": 5}], ids=str)
def test_wrappers_of_images_raise_with_options_of_frames(frames):
    pytest.importorskip("ale_py")
    around = ["escalade.envs.wrappers:LifeLossEnds", f"{HERE}:Dark"]
    said = "^`wrappers`: Dark changes observations, but .*: remove the wrapper or the options of frames"
    with pytest.raises(InputError, match=said) as raised:
        resolve("ALE/Pong-v5", wrappers=around, frames=Frames(**frames))
    assert "\n" not in str(raised.value)


def test_other_wrappers_work_with_options_of_frames():
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    wrappers = ["escalade.envs.wrappers:LifeLossEnds", "gymnasium.wrappers:ClipReward(-1, 1)"]
    environment = resolve("ALE/Pong-v5", wrappers=wrappers, frames=Frames(resize=(20, 16)))
    assert environment.observation_space.shape == (3, 20, 16)


@pytest.mark.parametrize(
    ("wrapper", "said"),
    [
        ("no_such_package:W", "module no_such_package cannot be imported"),
        ("tests.environments:Ofset", "has no Ofset; did you mean Offset"),
        ("tests.environments:OBSERVATIONS", "has no OBSERVATIONS"),
        (f"{OFFSET}(to=1)", "cannot wrap the environment: TypeError"),
        ("builtins:str", "returned a str, not a gymnasium.Env"),
        ("sys:exit", "`wrappers` sys:exit cannot wrap the environment: SystemExit: <"),
        ("gymnasium.wrappers:RescaleAction(0, 1)", "cannot wrap the environment: TypeError: RescaleAction"),
    ],
)
def test_a_wrapper_that_does_not_fit_raises_one_line(wrapper, said):
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
    with pytest.raises(InputError, match=r"^EnvPool has no .*: use `backend=gymnasium`$"):
        settle_backend(environment)


@pytest.mark.parametrize("key", ["nothing", "name"])
def test_a_missing_number_of_an_info_raises(key):
    with pytest.raises(InputError, match=f"^`reward` {key}: .*a step's info "):
        resolve("tests.environments:Informs-v0", reward_info=key)
