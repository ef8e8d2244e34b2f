"""Maps from raw outputs to actions, which are always contained in the space."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.environments import ACTIONS

from escalade import InputError
from escalade.envs import ActionMap

MAPS = [(name, bounding, "plain") for name in ACTIONS for bounding in ("clip", "rescale", "tanh", "sigmoid")]
MAPS += [("box", "tanh,clip", "plain"), ("box32", "sigmoid,clip,rescale,tanh", "plain")]
MAPS += [("box", "clip", "uniform:5"), ("box32", "clip", "uniform:2"), ("half", "clip", "custom:-1,0,1,2")]
MAPS += [("unbounded", "clip", "custom:-0.3,0.3"), ("number", "clip", "uniform:3")]
MAPS = [entry for entry in MAPS if entry[0] not in ("text", "dict")]


@pytest.mark.parametrize(("name", "bounding", "head"), MAPS, ids=str)
def test_actions_are_contained_in_the_space(name, bounding, head):
    space = ACTIONS[name]()
    actions = ActionMap(space, bounding, head)
    compiled = actions.compile()
    chance = np.random.default_rng(1)
    raw = (chance.normal(size=(300, actions.outputs)) * 10.0 ** chance.integers(-2, 5, (300, 1))).astype("f4")
    mapped = compiled(raw)
    assert len(mapped) == 300
    for action in mapped:
        assert space.contains(int(action) if isinstance(space, spaces.Discrete) else np.asarray(action))
    # Every row on its own gives the same action.
    for row in (0, 7, 299):
        np.testing.assert_array_equal(compiled(raw[row : row + 1])[0], mapped[row])


@settings(deadline=None, derandomize=True)
@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([("clip", "plain"), ("rescale", "plain"), ("tanh", "plain"), ("clip", "uniform:3")]),
    arrays.arrays(np.float32, (4, 3), elements=st.floats(-1e8, 1e8, width=32)),
)
def test_actions_stay_within_any_bounds(low, width, dtype, how, raw):
    space = spaces.Box(dtype(low), dtype(low + width), (3,), dtype)
    actions = ActionMap(space, *how)
    if how[1] != "plain":
        raw = np.concatenate([raw] * 3, axis=1)
    for action in actions.compile()(raw):
        assert space.contains(action)


def mapped(space, raw, *how):
    return ActionMap(space, *how).compile()(np.array(raw, np.float32))


def test_discrete_takes_the_largest_output():
    assert mapped(spaces.Discrete(3), [[0, 2, 1], [3, 2, 1]]).tolist() == [1, 0]
    assert mapped(spaces.Discrete(3, start=5), [[0, 2, 1]]).tolist() == [6]
    assert mapped(spaces.Discrete(2), [[0, 1], [1, 0], [1, 1]]).tolist() == [1, 0, 0]


def test_multidiscrete_takes_the_largest_of_each_group():
    space = spaces.MultiDiscrete([2, 3], start=[1, -4])
    assert mapped(space, [[0, 1, 0, 0, 5], [1, 0, 9, 0, 5]]).tolist() == [[2, -2], [1, -4]]


def test_multibinary_takes_the_sign():
    space = spaces.MultiBinary((2, 2))
    assert mapped(space, [[1, -1, 0, 0.1]]).tolist() == [[[1, 0], [0, 1]]]


def test_boxes_are_clipped_rescaled_or_squashed():
    space = spaces.Box(np.array([0.0, -4.0], "f4"), np.array([2.0, 0.0], "f4"))
    assert mapped(space, [[3, -9], [1, -1]], "clip").tolist() == [[2, -4], [1, -1]]
    assert mapped(space, [[0, 0.5], [-3, 3]], "rescale").tolist() == [[1, -1], [0, 0]]
    np.testing.assert_allclose(mapped(space, [[0, 0.5]], "tanh"), [[1, -2 + 2 * np.tanh(0.5)]], rtol=1e-6)


def test_each_dimension_may_have_a_map_of_its_own():
    space = spaces.Box(np.array([-1.0, 0.0, 0.0, -2.0], "f4"), np.array([1.0, 1.0, 3.0, 2.0], "f4"))
    raw = [[0.4, 0.4, 0.4, 0.4], [-9.0, 2.0, -1.0, 5.0]]
    sigmoid = 1 / (1 + np.exp(-np.array(raw)))
    expected = np.stack([np.tanh(raw)[:, 0], sigmoid[:, 1], 3 * sigmoid[:, 2], [0.4, 2.0]], axis=1)
    np.testing.assert_allclose(mapped(space, raw, "tanh,sigmoid,sigmoid,clip"), expected, rtol=1e-5)
    np.testing.assert_allclose(mapped(space, raw, "sigmoid")[:, 1], sigmoid[:, 1], rtol=1e-6)


@pytest.mark.parametrize("bounding", ["clip", "rescale", "tanh", "sigmoid", "tanh,sigmoid"])
def test_dimensions_without_bounds_are_left_alone(bounding):
    space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    assert mapped(space, [[1e6, -3.5]], bounding).tolist() == [[1e6, -3.5]]
    half = spaces.Box(np.array([0.0, -1.0], "f4"), np.array([np.inf, 1.0], "f4"))
    assert mapped(half, [[50.0, 0.0], [-1.0, 0.0]], bounding).tolist() == [[50, 0], [0, 0]]


def test_bins():
    space = spaces.Box(np.array([-1.0, 0.0], "f4"), np.array([1.0, 4.0], "f4"))
    actions = ActionMap(space, head="uniform:3")
    assert actions.outputs == 6
    assert not actions.continuous
    assert mapped(space, [[0, 1, 0, 0, 0, 1]], "clip", "uniform:3").tolist() == [[0, 4]]
    assert mapped(space, [[0, 1, 1, 0]], "clip", "custom:-2,0.5").tolist() == [[0.5, 0]]


@pytest.mark.parametrize(
    ("space", "how", "said"),
    [
        (spaces.Text(3), (), "Text.*not supported"),
        (spaces.Box(-1, 1), ("squash",), "'squash' must be one of auto, clip"),
        (spaces.Box(-1, 1, (3,)), ("tanh,clip",), "has 2 entries, but actions have 3"),
        (spaces.Discrete(2), ("clip", "uniform:3"), "Box action space"),
        (spaces.Box(-1, 1), ("clip", "uniform:1"), "N from 2"),
        (spaces.Box(-1, 1), ("clip", "uniform:x"), "uniform:N"),
        (spaces.Box(-1, 1), ("clip", "custom:1"), "custom:A,B"),
        (spaces.Box(-1, 1), ("clip", "custom:1,nan"), "custom:A,B"),
        (spaces.Box(-1, np.inf), ("clip", "uniform:3"), "needs action bounds"),
    ],
)
def test_invalid_arguments_raise(space, how, said):
    with pytest.raises(InputError, match=said):
        ActionMap(space, *how)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
@pytest.mark.parametrize("bounding", ["clip", "rescale", "tanh"])
def test_whole_numbers_do_not_wrap_around(bounding, dtype):
    limits = np.iinfo(dtype)
    space = spaces.Box(limits.min, limits.max, (1,), dtype)
    smallest, largest = ActionMap(space, bounding=bounding).compile()(np.array([[-1e30], [1e30]], np.float32))
    assert smallest == limits.min
    assert largest >= limits.max - limits.max // 2**52


@pytest.mark.parametrize("bounding", ["clip", "rescale", "tanh"])
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_integers_are_rounded_to_the_nearest(bounding, dtype):
    raw = np.linspace(-2, 2, 401, dtype=np.float32)
    found = mapped(spaces.Box(-1, 1, (1,), dtype), raw[:, None], bounding)[:, 0]
    meant = {"clip": np.clip(raw, -1, 1), "rescale": np.clip(raw, -1, 1), "tanh": np.tanh(raw)}[bounding]
    np.testing.assert_array_equal(found, np.rint(meant))
    assert {*found.tolist()} == {-1, 0, 1}


@pytest.mark.parametrize(
    ("low", "high", "meant"),
    [
        ([-1, -1], [1, 1], "clip"),
        ([-2, 0], [2, 1], "clip"),
        ([-0.4, -3], [0.4, 3], "clip"),
        ([300, 0], [500, 1e-3], "rescale"),
        ([-1, -10], [1, 10], "clip,rescale"),
        ([-np.inf, 2], [np.inf, 3], "clip,rescale"),
        ([0, 5], [np.inf, np.inf], "clip"),
    ],
)
def test_auto_scales_to_bounds_that_are_not_about_those_of_outputs(low, high, meant):
    space = spaces.Box(np.array(low), np.array(high), dtype=np.float64)
    actions = ActionMap(space)
    assert actions.bounding == meant
    middle, end = actions.compile()(np.array([[0, 0], [1, 1]], np.float32))
    for number, name in enumerate((meant.split(",") * 2)[:2]):
        if name == "rescale":
            assert middle[number] == pytest.approx((low[number] + high[number]) / 2)
            assert end[number] == pytest.approx(high[number])
    assert ActionMap(space, "clip").tie_advice == ("`action_map=rescale`" if "rescale" in meant else "")


def test_one_dimension_can_be_left_to_auto():
    space = spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 50.0]), dtype=np.float64)
    assert ActionMap(space, "tanh,auto").bounding == "tanh,rescale"


@pytest.mark.parametrize("bounding", ["rescale", "tanh", "sigmoid"])
def test_bounds_beyond_float32_are_reached(bounding):
    for most in (1e39, np.finfo(np.float64).max):
        space = spaces.Box(-most, most, (1,), np.float64)
        found = mapped(space, [[-1e30], [0.0], [1e30]], bounding)
        np.testing.assert_array_equal(found[:, 0], [-most, 0.0, most])


def test_bins_are_computed_in_the_precision_of_the_space():
    chosen = mapped(spaces.Box(-1.7, 3.1, (1,), np.float32), np.eye(3), "clip", "uniform:3")
    assert float(chosen[1, 0]) == pytest.approx(0.7000000477, abs=1e-9)
