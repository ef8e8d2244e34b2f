"""Masks of every form, and random play with legal actions."""

import numpy as np
import pytest
from gymnasium import spaces
from tests.environments import Masked

from escalade import InputError
from escalade.envs.masks import LegalActions, Masks, legal_action, mask_in_info, read_mask

PAIR = spaces.MultiDiscrete([2, 3], start=[1, -4])


@pytest.mark.parametrize(
    ("space", "mask", "found"),
    [
        (spaces.Discrete(3), np.array([1, 0, 1], np.int8), [1, 0, 1]),
        (spaces.Discrete(3, start=4), [True, False, False], [1, 0, 0]),
        (PAIR, (np.array([1, 0]), np.array([0, 1, 1])), [1, 0, 0, 1, 1]),
        (PAIR, np.array([1, 0, 0, 1, 1]), [1, 0, 0, 1, 1]),
        (PAIR, [np.array([1, 0]), np.array([0, 1, 1])], [1, 0, 0, 1, 1]),
        (
            spaces.MultiDiscrete([[2, 2], [2, 2]]),
            (((1, 0), (0, 1)), ((1, 1), (0, 0))),
            [1, 0, 0, 1, 1, 1, 0, 0],
        ),
    ],
)
def test_masks_have_a_bool_for_each_output(space, mask, found):
    assert read_mask(space, mask).tolist() == [bool(one) for one in found]


def test_a_mask_of_a_different_size_raises():
    with pytest.raises(InputError, match="action_mask has 2 numbers"):
        read_mask(spaces.Discrete(3), [1, 0])


def test_illegal_choices_become_legal_ones():
    assert legal_action(spaces.Discrete(3, start=5), 6, np.array([1, 0, 1], np.bool_)) in (5, 7)
    assert legal_action(spaces.Discrete(3), 1, np.zeros(3, np.bool_)) == 1  # as after the last step
    found = legal_action(PAIR, np.array([1, -4]), np.array([0, 1, 0, 0, 1], np.bool_))
    assert found.tolist() == [2, -2]


def test_slots_keep_their_masks_apart():
    masks = Masks(spaces.Discrete(2), 3)
    masks.take(0, {})
    assert not masks.active
    masks.take(1, {"action_mask": np.array([0, 1])})
    assert masks.of(np.array([0, 1])).tolist() == [[True, True], [False, True]]
    masks.take(1, {})
    assert masks.of(np.array([1])).all()


@pytest.mark.parametrize("inside", [False, True])
def test_random_play_is_legal(inside):
    env = LegalActions(mask_in_info(Masked(inside=inside)))
    assert "action_mask" not in str(env.observation_space)
    env.action_space.seed(0)
    for seed in range(5):
        env.reset(seed=seed)
        while not env.step(env.action_space.sample())[2]:
            pass
