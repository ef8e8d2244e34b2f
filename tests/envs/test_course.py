"""How episodes begin and end beside what the environment says."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from escalade import InputError
from escalade.envs import resolve, settle_backend
from escalade.envs.course import BurnIn, Course, EarlyEnd
from escalade.envs.frames import Frames


class Scripted(gymnasium.Env[Any, Any]):
    """Gives the rewards of a list, and ends after the last; keeps and changes the actions it gets."""

    observation_space = spaces.Box(-99, 99, (1,), np.float32)
    action_space = spaces.Box(-2, 2, (2,), np.float32)

    def __init__(self, rewards: list[float]) -> None:
        self.rewards, self.resets, self.actions = rewards, 0, []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.at, self.resets = 0, self.resets + 1
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.actions.append(np.array(action))
        action *= 0
        self.at += 1
        reward = self.rewards[self.at - 1]
        return np.full(1, self.at, np.float32), reward, self.at == len(self.rewards), False, {}


def ends_after(rewards, most, first=0):
    env = EarlyEnd(Scripted(rewards), most, first)
    lengths = []
    for _ in range(2):  # the second episode counts anew
        env.reset()
        for length in range(1, len(rewards) + 1):  # noqa: B007
            *_, terminated, truncated, _ = env.step(np.zeros(2))
            if terminated or truncated:
                break
        lengths.append((length, truncated))
    assert lengths[0] == lengths[1]
    return lengths[0]


@pytest.mark.parametrize(
    ("rewards", "most", "first", "expected"),
    [
        ([1, -1, -1, -1, 1, 1], 3, 0, (4, True)),
        ([-1, -1, 0, -1, -1, 1], 3, 0, (6, False)),
        ([-1] * 9, 3, 4, (7, True)),
        ([-1] * 9, 1, 0, (1, True)),
        ([-1, -1], 3, 0, (2, False)),
    ],
)
def test_an_episode_ends_after_steps_of_negative_reward(rewards, most, first, expected):
    assert ends_after(rewards, most, first) == expected


def test_the_burn_in_takes_one_action_and_drops_its_rewards():
    inner = Scripted([5, 5, 5, 7, 9])
    env = Course(burn_in=3, burn_in_action=(0.5, -1)).wrap(inner)
    for _ in range(2):
        observation, _ = env.reset(seed=1)
        assert observation.tolist() == [3]
        assert env.step(np.ones(2))[1] == 7
    first = [action.tolist() for action in inner.actions]
    assert first == [[0.5, -1]] * 3 + [[1, 1]] + [[0.5, -1]] * 3 + [[1, 1]]


def test_an_episode_that_ends_in_its_burn_in_begins_again():
    inner = Scripted([1, 1])
    observation, _ = BurnIn(inner, 5, np.zeros(2)).reset(seed=1)
    assert (observation.tolist(), inner.resets) == ([0], 2)


def test_both_hold_in_whatever_is_made_of_the_environment():
    course = Course(burn_in=4, early_end=3, early_end_from=2)
    environment = resolve("MountainCar-v0", course=course)
    assert settle_backend(environment).backend == "gymnasium"
    env = environment.make()
    start = env.reset(seed=3)[0]
    plain = resolve("MountainCar-v0").make()
    plain.reset(seed=3)
    np.testing.assert_array_equal(start, [plain.step(0)[0] for _ in range(4)][-1])
    ends = [env.step(0)[3] for _ in range(5)]
    assert ends == [False] * 4 + [True]


def test_the_step_limit_counts_the_policys_steps():
    course, frames = Course(burn_in=30), Frames(frame_skip=3)
    env = resolve("MountainCar-v0", max_episode_steps=7, course=course, frames=frames).make()
    for _ in range(2):
        env.reset(seed=3)
        assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]
    registered = resolve("MountainCar-v0", course=course, frames=frames)
    assert registered.max_episode_steps == 67  # 200 of the environment, of which the burn-in takes 90
    env = registered.make()
    env.reset(seed=3)
    assert [env.step(0)[3] for _ in range(37)] == [False] * 36 + [True]


@pytest.mark.parametrize(
    ("env", "action", "said"),
    [
        ("Pendulum-v1", (1.0, 1.0), "`burn_in_action` 1,1 is not in Box"),
        ("Pendulum-v1", (9.0,), "`burn_in_action` 9 is not in Box"),
        ("CartPole-v1", (0.5,), "`burn_in_action` 0.5 is not in Discrete"),
    ],
)
def test_a_burn_in_action_must_be_one(env, action, said):
    with pytest.raises(InputError, match=said):
        resolve(env, course=Course(3, action))


def test_an_episode_that_begins_again_after_its_burn_in_has_a_seed_of_its_own():
    seeds = []

    class Told(Scripted):
        def reset(self, *, seed=None, options=None):
            seeds.append(seed)
            return super().reset(seed=seed, options=options)

    env = BurnIn(Told([1, 1]), 3, np.zeros(2))  # its first beginning ends in the burn-in
    for _ in range(2):
        env.reset(seed=7)
    assert seeds[0] == 7
    assert seeds[1] not in (None, 7)
    assert seeds[2:] == seeds[:2]
    env.reset(seed=8)
    assert seeds[5] != seeds[1]
    assert 0 <= seeds[1] < 2**31
