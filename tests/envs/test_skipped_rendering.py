"""Skipped steps are not drawn; all other results are the same."""

import gymnasium
import numpy as np
import pytest

from escalade.envs.pixels.frames import FrameSkip

pytest.importorskip("Box2D")
ACTIONS = np.array([[0.0, 1.0, 0.0], [-1.0, 0.6, 0.0], [0.4, 0.0, 0.8], [0.3, 1.0, 0.0]])


def make(**options):
    return gymnasium.make("CarRacing-v3", disable_env_checker=True, **options)


@pytest.fixture
def drawn(monkeypatch):
    """Number of drawn images by environment."""
    from gymnasium.envs.box2d.car_racing import CarRacing

    counts, draw = {}, CarRacing._render

    def counted(self, mode):
        counts[id(self)] = counts.get(id(self), 0) + 1
        return draw(self, mode)

    monkeypatch.setattr(CarRacing, "_render", counted)
    return counts


def repeated(env, action, times):
    """The last observation, the sum of rewards, and how it ended."""
    total = 0.0
    for _ in range(times):
        observation, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        if terminated or truncated:
            break
    return observation, total, terminated, truncated


def test_a_skipped_picture_is_not_drawn_and_the_others_are_the_same(drawn):
    plain, skipping = make(), FrameSkip(make(), 4)
    np.testing.assert_array_equal(plain.reset(seed=3)[0], skipping.reset(seed=3)[0])
    drawn.clear()
    for step in range(12):
        action = ACTIONS[step % len(ACTIONS)]
        seen, total, *ends = repeated(plain, action, 4)
        observation, reward, *ended, _ = skipping.step(action)
        np.testing.assert_array_equal(observation, seen)
        assert (reward, ended) == (total, ends)
    assert drawn[id(skipping.unwrapped)] == 12
    assert drawn[id(plain.unwrapped)] == 48


@pytest.mark.parametrize("limit", [5, 6, 7, 8])
def test_an_episode_that_ends_among_skipped_steps_ends_with_its_picture(limit):
    plain = make(max_episode_steps=limit)
    skipping = FrameSkip(make(max_episode_steps=limit), 4)
    for env in (plain, skipping):
        env.reset(seed=4)
    for action in ACTIONS[:2]:
        seen, total, *ends = repeated(plain, action, 4)
        observation, reward, *ended, _ = skipping.step(action)
        np.testing.assert_array_equal(observation, seen)
        assert (reward, ended) == (total, ends)
    assert ends == [False, True]
