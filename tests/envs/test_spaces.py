"""Supported spaces, their flattening, and round trips of their descriptions."""

import json

import numpy as np
import pytest
from gymnasium import spaces
from tests.environments import ACTIONS, OBSERVATIONS

from escalade import InputError
from escalade.envs import resolve
from escalade.envs.spaces import (
    as_batch,
    check_observation_space,
    describe,
    flatten,
    is_vector,
    observation_dtype,
    observation_size,
    plain,
    restore,
    same,
)

SUPPORTED = [name for name in OBSERVATIONS if name not in ("film", "text", "sequence")]


BOUNDED = [name for name in ACTIONS if name not in ("text", "dict")]


@pytest.mark.parametrize("name", SUPPORTED)
def test_supported_spaces_flatten_to_a_vector(name):
    space = OBSERVATIONS[name]()
    check_observation_space(space)
    space.seed(3)
    sample = space.sample()
    flat = flatten(space, sample)
    assert flat.shape == (observation_size(space),)
    np.testing.assert_allclose(flat, spaces.flatten(space, sample), rtol=1e-6)
    assert is_vector(space) == (name in ("box", "box32", "integers"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("film", "has 4 dimensions.*wrap"),
        ("text", "Text.*not supported: use Box"),
        ("sequence", "Sequence"),
    ],
)
def test_other_spaces_raise(name, said):
    with pytest.raises(InputError, match=said):
        check_observation_space(OBSERVATIONS[name]())


def test_the_order_of_a_dict_is_preserved():
    space = spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Discrete(3))])
    sample = {"z": 1, "a": 0}
    restored = restore(describe(space))
    assert flatten(restored, sample).tolist() == flatten(space, sample).tolist()


def test_same_compares_up_to_the_precision_of_bounds():
    box = spaces.Box(-0.1, 0.1, (2,), np.float32)
    assert same(box, spaces.Box(-0.1, 0.1, (2,), np.float64))
    assert not same(box, spaces.Box(-0.1, 0.2, (2,), np.float32))
    assert not same(box, spaces.Box(-0.1, 0.1, (3,), np.float32))
    assert not same(box, spaces.Discrete(2))
    assert same(spaces.Discrete(3), spaces.Discrete(3))
    assert not same(spaces.Discrete(3), spaces.Discrete(3, start=1))


@pytest.mark.parametrize(
    "space", [*(OBSERVATIONS[name]() for name in SUPPORTED), *(ACTIONS[name]() for name in BOUNDED)], ids=repr
)
def test_descriptions_restore_spaces(space):
    restored = restore(json.loads(json.dumps(describe(space))))
    assert restored == space
    assert restored.dtype == space.dtype


WHOLE = [
    spaces.Box(0, np.iinfo(np.int64).max, (2,), np.int64),
    spaces.Box(-np.inf, np.inf, (2,), np.int64),
    spaces.Box(0, np.iinfo(np.uint64).max, (1,), np.uint64),
    spaces.Box(-3, 200, (2, 2), np.int16),
    spaces.Discrete(3, start=-1, dtype=np.int32),
    spaces.MultiDiscrete([2, 3], dtype=np.int32, start=[1, 0]),
]


@pytest.mark.parametrize("space", WHOLE, ids=repr)
def test_whole_numbers_keep_their_type_and_every_digit(space):
    again = restore(json.loads(json.dumps(describe(space))))
    assert again == space
    assert again.dtype == space.dtype
    if isinstance(space, spaces.Box):
        assert (again.low == space.low).all()
        assert (again.high == space.high).all()


@pytest.mark.parametrize(
    ("space", "given"),
    [
        (spaces.Box(-np.inf, np.inf, (1,), np.float32), np.array([1000.0123456789])),
        (spaces.Box(0, 2**31 - 1, (1,), np.int32), np.array([2**24 + 1], np.int32)),
        (spaces.Box(-1, 1, (1,), np.float64), np.array([0.1234567890123])),
    ],
    ids=repr,
)
def test_a_policy_sees_the_numbers_that_training_sees(space, given):
    seen, _ = as_batch(space, given)
    np.testing.assert_array_equal(seen[0], given.astype(observation_dtype(space)))


@pytest.mark.parametrize(
    ("space", "given", "columns"),
    [
        (spaces.Discrete(4, dtype=np.int32), 2, [0, 0, 1, 0]),
        (spaces.MultiDiscrete([3, 2], dtype=np.int32), np.array([1, 0]), [0, 1, 0, 1, 0]),
        (spaces.MultiBinary(2), np.array([1, 0]), [1, 0]),
    ],
)
def test_integers_of_a_different_type_are_converted_as_in_training(space, given, columns):
    seen, batched = as_batch(space, given)
    assert (seen.tolist(), batched) == ([columns], False)


def subclass(kind):
    return type(f"Own{kind.__name__}", (kind,), {})


@pytest.mark.parametrize(
    "space",
    [
        *WHOLE,
        spaces.Box(-0.1, np.inf, (2,), np.float32),
        spaces.MultiBinary((2, 3)),
        spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Tuple([spaces.MultiDiscrete([[2, 3]])]))]),
    ],
    ids=repr,
)
def test_a_plain_copy_is_the_same_space_of_gymnasiums_classes(space):
    own = subclass(type(space)).__new__(subclass(type(space)))
    own.__dict__.update(space.__dict__)
    copy = plain(own)
    assert type(copy) is type(space)
    assert copy == space
    if isinstance(space, spaces.Box):
        np.testing.assert_array_equal(copy.bounded_below, space.bounded_below)
        np.testing.assert_array_equal(copy.bounded_above, space.bounded_above)
    if isinstance(space, spaces.Dict):
        assert [*copy] == [*space]


def test_subclasses_of_spaces_are_replaced_by_gymnasiums_classes():
    environment = resolve("tests.environments:Generated")
    assert type(environment.observation_space) is spaces.Box
    assert type(environment.action_space) is spaces.Discrete
