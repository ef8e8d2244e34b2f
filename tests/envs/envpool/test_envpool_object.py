"""EnvPool's CarRacing by name: episodes, wrappers and processing of frames."""

import numpy as np
import pytest
from tests.later import Later, needs

from escalade import InputError
from escalade.envs import resolve, settle_backend, vectorize
from escalade.envs.pixels.frames import Frames
from escalade.envs.process import quiet

pytest.importorskip("Box2D")
pytest.importorskip("cv2")
pytestmark = needs("envpool")
envpool = Later("envpool")
SMALL = Frames(grayscale=True, resize=(8, 8), frame_skip=4)
DRIVE = np.array([0.1, 1.0, 0.0], np.float32)


def car(**options):
    return resolve("CarRacing-v3", backend="envpool", **options)


def seeded(*values):
    return np.array(values, np.int64)


def played(vector, slots, row, steps):
    """Observations and rewards of one slot, all of them driven alike."""
    seen, gained = [], []
    for _ in range(steps):
        observations, rewards, _ = vector.step(slots, np.tile(DRIVE, (len(slots), 1)))
        seen.append(observations[row])
        gained.append(rewards[row])
    return np.array(seen), gained


def test_episodes_equal_those_of_a_pool():
    with quiet():
        pool = envpool.make("CarRacing-v3", env_type="gymnasium", num_envs=1, num_threads=1, seed=7)
    vector = vectorize(car(), 2)
    first = vector.reset(seeded(0, 1), seeded(3, 7))[1]
    np.testing.assert_array_equal(first, pool.reset()[0][0].transpose(2, 0, 1))
    seen, gained = played(vector, seeded(0, 1), 1, 30)
    for observation, reward in zip(seen, gained, strict=True):
        expected, rewards, *_ = pool.step(DRIVE[None])
        np.testing.assert_array_equal(observation, expected[0].transpose(2, 0, 1))
        assert reward == rewards[0]


def test_frames_are_skipped_small_and_the_same_in_any_slot():
    environment = car(frames=SMALL)
    alone, crowd = vectorize(environment, 1), vectorize(environment, 3)
    for seed in (11, 12):  # the second episode in a used slot
        first = alone.reset(seeded(0), seeded(seed))
        assert first.shape == (1, 1, 8, 8)
        others = crowd.reset(seeded(0, 1, 2), seeded(5, seed, 6))
        np.testing.assert_array_equal(first[0], others[1])
        seen, gained = played(alone, seeded(0), 0, 12)
        also, too = played(crowd, seeded(0, 1, 2), 1, 12)
        np.testing.assert_array_equal(seen, also)
        assert gained == too
        assert seen.std() > 0


def test_limits_and_early_ends_hold():
    vector = vectorize(car(frames=SMALL, max_episode_steps=3), 1)
    vector.reset(seeded(0), seeded(1))
    still = np.zeros((1, 3), np.float32)
    assert [bool(vector.step(seeded(0), still)[2][0]) for _ in range(3)] == [False, False, True]
    vector = vectorize(car(early_end=(2, 5)), 1)
    vector.reset(seeded(0), seeded(1))
    ends = [bool(vector.step(seeded(0), still)[2][0]) for _ in range(7)]
    assert ends == [False] * 6 + [True]


def test_envpools_car_is_used_only_by_name_with_at_most_64_slots():
    assert settle_backend(resolve("CarRacing-v3", frames=SMALL)).backend == "gymnasium"
    assert vectorize(car(), 1000).slots == 64
    with pytest.raises(InputError, match="EnvPool has no CarRacing-v3"):
        settle_backend(car(info_keys=("speed",)))
