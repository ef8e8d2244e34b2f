"""Episodes of Atari games are bit-identical on the ALE backend and on Gymnasium's."""

from itertools import islice

import numpy as np
import pytest

from escalade import InputError
from escalade.envs import resolve, settle_backend, vectorize
from escalade.envs.pixels.frames import Frames

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

PIXELS = Frames(
    grayscale=True,
    resize=(20, 16),
    frame_skip=4,
    max_pool=True,
    frame_stack=3,
    noop_max=9,
    sticky_actions=0.0,
)
CASES = {
    "pixels": ("ALE/Pong-v5", {}, PIXELS, 12),
    "sticky": ("ALE/Breakout-v5", {}, Frames(crop=(34, 194), resize=(20,), grayscale=True), None),
    "colors": (
        "ALE/Breakout-v5",
        {"repeat_action_probability": 0.0},
        Frames(crop=(30, 200, 8, 152), frame_skip=16),
        None,
    ),
    "thin": ("ALE/Breakout-v5", {"repeat_action_probability": 0.0}, Frames(crop=(100, 102)), None),
    "memory": (
        "ALE/SpaceInvaders-v5",
        {"obs_type": "ram", "difficulty": 1},
        Frames(frame_skip=3, frame_stack=2, noop_max=5, sticky_actions=0.0),
        9,
    ),
    "as it is": ("ALE/Pong-v5", {"repeat_action_probability": 0.0, "obs_type": "grayscale"}, Frames(), None),
    "carries over": ("ALE/Assault-v5", {}, Frames(resize=(20,), sticky_actions=0.0), None),
}


AROUND = ["gymnasium:Wrapper"]
"""A wrapper that does nothing: Gymnasium's environment is stepped within it, not the emulator."""


def both(env, kwargs, limit, frames):
    """Slots of the backend, and a slot with Gymnasium's environment."""
    ours = resolve(env, kwargs, "ale", limit, frames=frames)
    assert settle_backend(ours) == ours
    return vectorize(ours, 2), vectorize(
        resolve(env, kwargs, "auto", limit, frames=frames, wrappers=AROUND), 1
    )


def steps(one, two, seed, actions):
    """Observations and ends of an episode, which are the same in both."""
    slot, alone = np.array([1]), np.array([0])
    first, second = one.reset(slot, np.array([seed])), two.reset(alone, np.array([seed]))
    for action in np.random.default_rng(1).integers(actions, size=1000):
        np.testing.assert_array_equal(first, second)
        assert first.dtype == second.dtype
        first, reward, ended = one.step(slot, action[None])
        second, expected, over = two.step(alone, action[None])
        assert (reward.tolist(), ended.tolist()) == (expected.tolist(), over.tolist())
        yield first, bool(ended[0])
        if ended[0]:
            np.testing.assert_array_equal(first, second)
            return


@pytest.mark.parametrize("case", CASES)
def test_episodes_equal_gymnasiums(case):
    env, kwargs, frames, limit = CASES[case]
    one, two = both(env, kwargs, limit, frames)
    for seed in (5, 6):  # the second one after the first, in the same emulator
        *_, (_, ended) = islice(steps(one, two, seed, 4), 14)
        assert ended == (limit is not None) or case == "colors"
    one.close()
    two.close()


ENDINGS = {
    "colors": ({}, Frames()),
    "gray": ({"obs_type": "grayscale"}, Frames()),
    "memory": ({"obs_type": "ram"}, Frames()),
    "treated": ({}, Frames(grayscale=True, frame_skip=4)),
    "pooled": ({}, Frames(frame_skip=4, max_pool=True)),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_the_last_observation_of_a_game_that_is_over_is_gymnasiums(case):
    kwargs, frames = ENDINGS[case]
    one, two = both("ALE/Breakout-v5", kwargs | {"repeat_action_probability": 0.0}, None, frames)
    *_, (before, _), (last, ended) = steps(one, two, 5, 4)
    assert ended
    if (
        not frames.max_pool
    ):  # Gymnasium's wrapper of frames shows the picture before once more, a game a new one
        assert np.array_equal(before, last) == (not frames.off)
    one.close()
    two.close()


def test_a_wrappers_stack_of_frames_keeps_its_channels_first():
    wrappers = ["gymnasium.wrappers:AtariPreprocessing", "gymnasium.wrappers:FrameStackObservation(4)"]
    game = resolve("ALE/Pong-v5", {"frameskip": 1}, wrappers=wrappers)
    assert game.observation_space.shape == (4, 84, 84)


def test_auto_selects_ale_for_games_without_wrappers():
    game = resolve("ALE/Pong-v5", frames=PIXELS)
    assert settle_backend(game).backend == "ale"
    assert game.observation_space.shape == (3, 20, 16)
    assert game.max_episode_steps == 27000
    assert settle_backend(resolve("ALE/Pong-v5", frames=PIXELS, wrappers=AROUND)).backend == "gymnasium"
    with pytest.raises(InputError, match="ALE has no CartPole-v1"):
        settle_backend(resolve("CartPole-v1", backend="ale"))


@pytest.mark.parametrize("case", ["pixels", "sticky"])
def test_an_episode_continues_from_a_saved_state(case):
    env, kwargs, frames, _ = CASES[case]
    games = vectorize(resolve(env, kwargs, "ale", 12, frames=frames), 3)
    first, other = np.array([0]), np.array([2])
    actions = np.random.default_rng(2).integers(4, size=(12, 1))
    games.reset(first, np.array([5]))
    for action in actions[:4]:
        seen, *_ = games.step(first, action)
    state = games.keep(0)
    rest = [games.step(first, action) for action in actions[4:]]
    for slot in (other, first):
        np.testing.assert_array_equal(games.go_on(slot, [state]), seen)
        for action, expected in zip(actions[4:], rest, strict=True):
            for found, known in zip(games.step(slot, action), expected, strict=True):
                np.testing.assert_array_equal(found, known)
    assert rest[-1][2].tolist() == [True]  # at the limit of twelve steps, those before the state included
    games.close()


@pytest.mark.parametrize("kwargs", [{"repeat_action_probability": 0.9}, {"frameskip": (2, 5)}])
def test_an_episode_from_a_saved_state_does_not_depend_on_the_slots_past(kwargs):
    games = vectorize(resolve("ALE/Boxing-v5", {"obs_type": "ram", **kwargs}, "ale", 99), 3)
    every = np.arange(3)
    games.reset(every[:1], np.array([5]))
    for action in range(8):
        games.step(every[:1], np.array([action]))
        state = games.keep(0)
        for slot, past in ((1, 3), (2, 4)):
            games.go_on(every[[slot]], [state])
            for _ in range(past):
                games.step(every[[slot]], np.array([past]))
        np.testing.assert_array_equal(*games.go_on(every[1:], [state, state]))
        for following in (6, 1, 9, 4, 2):
            seen, *_ = games.step(every[1:], np.array([following, following]))
            np.testing.assert_array_equal(*seen)
    games.close()
