"""Episodes that end early, after steps of negative reward."""

import numpy as np
import pytest
from tests.envs.test_wrappers import Scripted

from escalade import InputError
from escalade.envs import resolve, settle_backend
from escalade.envs.objects import EarlyEnd
from escalade.envs.pixels.frames import Frames


def ends_after(rewards, after):
    env = EarlyEnd(Scripted(rewards), after)
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
    ("rewards", "after", "expected"),
    [
        ([1, -1, -1, -1, 1, 1], 3, (4, True)),
        ([-1, -1, 0, -1, -1, 1], (3,), (6, False)),
        ([-1] * 9, (3, 4), (7, True)),
        ([-1] * 9, 1, (1, True)),
        ([-1, -1], 3, (2, False)),
    ],
)
def test_an_episode_ends_after_steps_of_negative_reward(rewards, after, expected):
    assert ends_after(rewards, after) == expected


def test_an_early_end_counts_policy_steps_outside_of_wrappers():
    burned = ["escalade.envs.wrappers:BurnIn(4)"]
    environment = resolve("MountainCar-v0", early_end=(3, 2), wrappers=burned)
    assert settle_backend(environment).backend == "gymnasium"
    env = environment.make()
    start = env.reset(seed=3)[0]
    plain = resolve("MountainCar-v0").make()
    plain.reset(seed=3)
    np.testing.assert_array_equal(start, [plain.step(0)[0] for _ in range(4)][-1])
    ends = [env.step(0)[3] for _ in range(5)]
    assert ends == [False] * 4 + [True]


def test_the_step_limit_counts_the_policys_steps():
    burned, frames = ["escalade.envs.wrappers:BurnIn(90)"], Frames(frame_skip=3)
    env = resolve("MountainCar-v0", max_episode_steps=7, wrappers=burned, frames=frames).make()
    for _ in range(2):
        env.reset(seed=3)
        assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]
    registered = resolve("MountainCar-v0", wrappers=burned, frames=frames)
    assert registered.max_episode_steps == 67  # 200 of the environment, of which the burn-in takes 90
    env = registered.make()
    env.reset(seed=3)
    assert [env.step(0)[3] for _ in range(37)] == [False] * 36 + [True]


@pytest.mark.parametrize(("limit", "steps"), [(20, 20), (50, 50), (60, 60)])
def test_a_limit_beyond_the_registered_one_holds_with_skipped_frames_too(limit, steps):
    env = resolve("Pendulum-v1", max_episode_steps=limit, frames=Frames(frame_skip=4)).make()
    env.reset(seed=3)
    ends = [env.step(np.zeros(1, np.float32))[3] for _ in range(steps)]
    assert ends == [False] * (steps - 1) + [True]


def test_an_early_end_by_a_missing_info_entry_is_refused():
    with pytest.raises(InputError, match=r"^`reward` typo: a step's info has no such entry"):
        resolve("CartPole-v1", early_end=(20,), reward_info="typo")
