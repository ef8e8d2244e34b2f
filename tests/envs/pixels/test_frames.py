"""Options of frames compared with Gymnasium's wrappers on recorded frames, and their errors."""

import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.envs.registration import EnvSpec

from escalade import InputError
from escalade.envs.pixels.frames import Frames
from escalade.envs.wrappers import LifeLossEnds

pytest.importorskip("cv2")

HEIGHT, WIDTH, LENGTH = 10, 8, 40
RECORDED = np.random.default_rng(4).integers(0, 256, (LENGTH, HEIGHT, WIDTH, 3), np.uint8)
GREY = RECORDED.mean(axis=3).astype(np.uint8)
ATARI = EnvSpec("Recorded-v0", entry_point="ale_py.env:AtariEnv")
PLAIN = EnvSpec("Recorded-v0", entry_point="somewhere:Else")
CROP = (2, 9, 1, 7)


class Recorded(gymnasium.Env[Any, Any]):
    """Plays recorded frames for any actions, and loses a life every seventh. Also acts as the emulator."""

    observation_space = spaces.Box(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
    action_space = spaces.Discrete(3)
    _frameskip = 1

    def __init__(self, shape: str = "rgb") -> None:
        self.ale = self
        self.given: list[int] = []
        if shape == "gray":
            self.observation_space = spaces.Box(0, 255, (HEIGHT, WIDTH), np.uint8)
        elif shape == "ram":
            self.observation_space = spaces.Box(0, 255, (HEIGHT,), np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return self.frame(), {"lives": self.lives()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.given.append(int(action))
        self.at += 1
        return self.frame(), float(self.at), self.at >= LENGTH - 1, False, {"lives": self.lives()}

    def frame(self) -> np.ndarray:
        kinds = {3: RECORDED, 2: GREY, 1: RECORDED[:, :, 0, 0]}
        return kinds[len(self.observation_space.shape)][self.at].copy()

    def lives(self) -> int:
        return 9 - self.at // 7

    def get_action_meanings(self) -> list[str]:
        return ["NOOP", "FIRE", "RIGHT"]

    def getScreenGrayscale(self, out: np.ndarray) -> None:  # noqa: N802 - the emulator's name
        out[:] = GREY[self.at]

    def getRAM(self) -> np.ndarray:  # noqa: N802
        return np.tile(RECORDED[self.at, 0, 0, 0], 128)

    def getScreenRGB(self, out: np.ndarray) -> None:  # noqa: N802
        out[:] = RECORDED[self.at]


def played(env, seed=3, steps=4):
    """Observations without the last one of an ended episode, rewards and ends."""
    seen, rewards, ended = [np.array(env.reset(seed=seed)[0])], [], False
    for step in range(steps):
        observation, reward, terminated, truncated, _ = env.step(step % 3)
        rewards.append(float(reward))
        ended = terminated or truncated
        if ended:
            break
        seen.append(np.array(observation))
    return seen, rewards, ended


def crop(env, part):
    top, bottom, left, right = part
    space = spaces.Box(0, 255, (bottom - top, right - left, *env.observation_space.shape[2:]), np.uint8)
    return wrappers.TransformObservation(env, lambda image: image[top:bottom, left:right], space)


def channels(observation, *, stacked, gray):
    """(K, H, W, C), (K, H, W), (H, W, C) or (H, W) as (channels, H, W)."""
    frames = observation if stacked else observation[None]
    frames = frames[..., None] if gray else frames
    return np.concatenate([np.moveaxis(frame, -1, 0) for frame in frames])


def equal(ours, theirs, *, stacked, gray):
    assert ours[1:] == theirs[1:]
    assert len(ours[0]) == len(theirs[0])
    for one, two in zip(ours[0], theirs[0], strict=True):
        np.testing.assert_array_equal(one, channels(two, stacked=stacked, gray=gray))
        assert one.dtype == np.uint8


ON_OFF = (False, True)


@pytest.mark.parametrize("gray", ON_OFF)
@pytest.mark.parametrize("skip", [None, 4])
def test_atari_images_are_those_of_gymnasiums_wrappers(gray, skip):
    for cut, size, stack, noops in itertools.product(((), CROP), ((), (5, 6)), (1, 3), (0, 4)):
        pooled = (skip or 1) > 1
        frames = Frames(gray, cut, size, skip, pooled, stack, noops)
        height, width = size if size and not cut else (HEIGHT, WIDTH)
        theirs = wrappers.AtariPreprocessing(
            Recorded(), noops, skip or 1, (width, height), grayscale_obs=gray
        )
        theirs = crop(theirs, cut) if cut else theirs
        theirs = wrappers.ResizeObservation(theirs, size) if size and cut else theirs
        theirs = wrappers.FrameStackObservation(theirs, stack) if stack > 1 else theirs
        ours = frames.wrap(gymnasium.Wrapper(Recorded()), ATARI)
        colors = 1 if gray else 3
        expected = size or (7, 6) if cut else size or (HEIGHT, WIDTH)
        assert ours.observation_space.shape == ((stack * colors), *expected)
        equal(played(ours), played(theirs), stacked=stack > 1, gray=gray)


@pytest.mark.parametrize("gray", ON_OFF)
@pytest.mark.parametrize("skip", [1, 2])
def test_images_of_other_environments_equal_those_of_gymnasiums_wrappers(gray, skip):
    for cut, size, stack, pooled in itertools.product(((), CROP), ((), (5, 6)), (1, 3), ON_OFF):
        if pooled and (skip or 1) < 2:
            continue
        frames = Frames(gray, cut, size, skip, pooled, stack)
        theirs = Recorded()
        if pooled:
            theirs = wrappers.MaxAndSkipObservation(theirs, skip)
        elif (skip or 1) > 1:
            theirs = Repeated(theirs, skip)
        theirs = crop(theirs, cut) if cut else theirs
        theirs = wrappers.GrayscaleObservation(theirs) if gray else theirs
        theirs = wrappers.ResizeObservation(theirs, size) if size else theirs
        theirs = wrappers.FrameStackObservation(theirs, stack) if stack > 1 else theirs
        ours = frames.wrap(Recorded(), PLAIN)
        equal(played(ours), played(theirs), stacked=stack > 1, gray=gray)
        assert ours.unwrapped.given == theirs.unwrapped.given


class Repeated(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Repeats each action; Gymnasium's wrapper also takes a maximum."""

    def __init__(self, env: Any, times: int) -> None:
        super().__init__(env)
        self.times = times

    def step(self, action: Any) -> Any:
        steps = [self.env.step(action) for _ in range(self.times)]
        observation, _, terminated, truncated, info = steps[-1]
        return observation, sum(step[1] for step in steps), terminated, truncated, info


def test_memory_starts_and_ends_like_images():
    frames = Frames(noop_max=5, frame_stack=2)
    ours = frames.wrap(LifeLossEnds(Recorded("ram")), ATARI)
    theirs = wrappers.AtariPreprocessing(Recorded(), 5, 1, 4, terminal_on_life_loss=True)
    _, rewards, ended = played(ours, steps=9)
    assert (rewards, ended) == played(theirs, steps=9)[1:]
    assert ended
    assert ours.unwrapped.at == theirs.unwrapped.at
    first = ours.reset(seed=3)[0]
    assert first.shape == (2, 128)


def test_atari_skips_and_sticks_in_the_emulator():
    assert Frames(frame_skip=4, sticky_actions=0.25).kwargs(ATARI) == {
        "frameskip": 4,
        "repeat_action_probability": 0.25,
    }
    assert Frames(frame_skip=4, max_pool=True).kwargs(ATARI) == {"frameskip": 1}
    assert Frames().kwargs(ATARI) == Frames(frame_skip=4, sticky_actions=0.5).kwargs(PLAIN) == {}


def test_the_header_of_a_game_names_its_sticky_actions(tmp_path, capsys):
    pytest.importorskip("ale_py")
    import escalade

    ram = {"obs_type": "ram"}
    options = {"policy": "linear", "population": 2, "workers": 0, "generations": 1, "eval_episodes": 1}
    options |= {"env_kwargs": ram, "sticky_actions": 0.0, "max_episode_steps": 2}
    escalade.train("ALE/Pong-v5", preset=None, run_dir=tmp_path / "run", **options)
    assert ", sticky actions 0 instead of the default 0.25\n" in capsys.readouterr().out


REFUSED = [
    (Frames(sticky_actions=0.5), "rgb", PLAIN, "`sticky_actions` is for Atari games"),
    (Frames(noop_max=3), "rgb", PLAIN, "`noop_max` is for Atari games, and Recorded-v0 is not one"),
    (Frames(grayscale=True), "ram", PLAIN, "`grayscale` needs images, and Recorded-v0 has no images"),
    (Frames(frame_skip=2, max_pool=True), "ram", PLAIN, "`frame_skip` needs images"),
    (Frames(resize=(4,)), "ram", ATARI, "`resize` needs images, but observations are the memory"),
    (Frames(crop=(0, 11)), "rgb", PLAIN, "`crop` 0,11 exceeds the image of 10 x 8"),
    (Frames(crop=(0, 9, 0, 9)), "rgb", ATARI, "`crop` 0,9,0,9 exceeds"),
]


@pytest.mark.parametrize(("frames", "shape", "spec", "said"), REFUSED)
def test_options_that_do_not_apply_raise(frames, shape, spec, said):
    with pytest.raises(InputError, match=said):
        frames.wrap(gymnasium.Wrapper(Recorded(shape)), spec)


class Odd(gymnasium.Env[Any, Any]):
    """Returns the same array in all steps, writes to its actions, has a generator; ends after 6 steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.own, self.at, self.seen, self.taken = np.random.default_rng(seed), 0, np.zeros(2), []
        return self.seen, {}

    def step(self, action: Any) -> Any:
        self.taken.append(float(action[0]))
        action *= 0
        self.at += 1
        self.seen[:] = self.at
        return self.seen, 1.0, self.at == 6, False, {}


def test_environments_that_reuse_their_arrays_are_stacked_and_repeated():
    env = Frames(frame_stack=3, frame_skip=2).wrap(Odd(), PLAIN)
    env.reset(seed=0)
    action = np.ones(1, np.float32)
    stacked = [env.step(action)[0] for _ in range(3)][-1]
    np.testing.assert_array_equal(stacked[:, 0], [2, 4, 6])
    assert env.unwrapped.taken == [1.0] * 6
    assert action[0] == 1


def test_the_last_image_is_not_pooled_with_a_different_episode():
    env = Frames(frame_skip=4, max_pool=True).wrap(Recorded(), PLAIN)
    env.reset(seed=0)
    steps = -(-(LENGTH - 1) // 4)
    last = [env.step(0) for _ in range(steps)][-1]
    assert last[2]  # in the third of four: 39 steps are nine times four and three
    expected = np.moveaxis(RECORDED[LENGTH - 2 : LENGTH].max(axis=0), -1, 0)
    np.testing.assert_array_equal(last[0], expected)
