"""Escalade's own wrappers: behavior, errors and purity."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from escalade import InputError
from escalade.envs import resolve
from escalade.envs.purity import probe_purity
from escalade.envs.wrappers import BurnIn, FireOnReset, LifeLossEnds

HOME = "escalade.envs.wrappers"


class Scripted(gymnasium.Env[Any, Any]):
    """Returns the rewards of a list and ends after the last. Stores and changes its actions."""

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


def test_the_burn_in_takes_one_action_and_drops_its_rewards():
    inner = Scripted([5, 5, 5, 7, 9])
    env = BurnIn(inner, 3, [0.5, -1])
    for _ in range(2):
        observation, _ = env.reset(seed=1)
        assert observation.tolist() == [3]
        assert env.step(np.ones(2))[1] == 7
    first = [action.tolist() for action in inner.actions]
    assert first == [[0.5, -1]] * 3 + [[1, 1]] + [[0.5, -1]] * 3 + [[1, 1]]


def test_an_episode_that_ends_in_its_burn_in_begins_again():
    inner = Scripted([1, 1])
    observation, _ = BurnIn(inner, 5).reset(seed=1)
    assert (observation.tolist(), inner.resets) == ([0], 2)


@pytest.mark.parametrize(
    ("env", "wrapper", "said"),
    [
        ("Pendulum-v1", "BurnIn(3, [1.0, 1.0])", r"the action \[1.0, 1.0\] is not in Box"),
        ("Pendulum-v1", "BurnIn(3, action=9)", "the action 9 is not in Box"),
        ("CartPole-v1", "BurnIn(3, 0.5)", "the action 0.5 is not in Discrete"),
        ("CartPole-v1", "BurnIn(steps=0)", "steps 0 must be an integer of at least 1"),
        ("CartPole-v1", "FireOnReset", "CartPoleEnv is not an Atari game"),
        ("CartPole-v1", "LifeLossEnds", "CartPoleEnv is not an Atari game"),
    ],
)
def test_our_wrappers_raise_one_line_if_they_do_not_fit(env, wrapper, said):
    with pytest.raises(InputError, match=f"^`wrappers` .* cannot wrap the environment: ValueError: {said}"):
        resolve(env, wrappers=[f"{HOME}:{wrapper}"])


def test_a_discrete_burn_in_takes_the_first_action_or_the_one_that_is_named():
    for given, expected in ((None, 0), (2, 2)):
        ours, plain = BurnIn(gymnasium.make("MountainCar-v0"), 4, given), gymnasium.make("MountainCar-v0")
        plain.reset(seed=3)
        steps = [plain.step(expected)[0] for _ in range(4)]
        np.testing.assert_array_equal(ours.reset(seed=3)[0], steps[-1])


class Game(Scripted):
    """A fake Atari game that loses a life every third step."""

    ale = None
    action_space = spaces.Discrete(3)

    def __init__(self, meanings: list[str]) -> None:
        super().__init__([1.0] * 20)
        self.meanings, self.pressed = meanings, []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=seed)[0], {"lives": 3}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.pressed.append(action)
        *given, _ = super().step(np.zeros(1))
        return *given, {"lives": 3 - self.at // 3}

    def get_action_meanings(self) -> list[str]:
        return self.meanings


def test_fire_is_pressed_once_after_each_reset_of_a_game_that_has_it():
    with_it, without = Game(["NOOP", "FIRE", "UP"]), Game(["NOOP", "UP", "DOWN"])
    for game, pressed in ((with_it, [1, 1]), (without, [])):
        env = FireOnReset(game)
        observations = [env.reset(seed=1)[0].tolist() for _ in range(2)]
        assert (game.pressed, observations) == (pressed, [[float(bool(pressed))]] * 2)


def test_the_loss_of_a_life_ends_an_episode_and_the_next_one_has_them_all():
    env = LifeLossEnds(Game(["NOOP"]))
    for _ in range(2):
        env.reset(seed=1)
        assert [env.step(0)[2] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("env", "wrappers"),
    [
        ("CartPole-v1", ["BurnIn(40)"]),  # some of whose episodes end in their burn-in
        ("Pendulum-v1", ["BurnIn(5, [0.5])"]),
        ("ALE/Breakout-v5", ["LifeLossEnds", "FireOnReset"]),
    ],
)
def test_wrapped_episodes_are_functions_of_their_seeds_in_any_object(env, wrappers):
    if env.startswith("ALE/"):
        pytest.importorskip("ale_py")
    environment = resolve(env, wrappers=[f"{HOME}:{wrapper}" for wrapper in wrappers])
    assert probe_purity(environment).verdict == "pure"
