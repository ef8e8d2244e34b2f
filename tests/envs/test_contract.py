"""Environments of the user's that lack what Gymnasium asks of one: each is told in one line."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import escalade
from escalade.envs import contract, resolve
from escalade.errors import EnvironmentFailure, InputError


class Whole(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, True, False, {}


class Seedless(Whole):
    def reset(self):
        return super().reset()


class SeedAlone(Whole):
    def reset(self, seed=None):
        return super().reset(seed=seed)


class AnyKeyword(Whole):
    def reset(self, **how):
        return super().reset(**how)


class Spaceless(gymnasium.Env):
    action_space = spaces.Discrete(2)


class WordForASpace(Whole):
    action_space = "two"


class Asks(Whole):
    def __init__(self, path):
        self.path = path


class AsksInside(Whole):
    def __init__(self):
        Asks()


made = Whole()


class Shrinks(Whole):
    """Gives one number of two in its second step, which numpy would spread over both."""

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        return np.zeros(2 if self.steps < 2 else 1, np.float32), 1.0, False, False, {}


class NoEnvironment:
    observation_space, action_space = Whole.observation_space, Whole.action_space


def asking(path):
    return Whole()


gymnasium.register("Seedless-v0", Seedless)
gymnasium.register("Spaceless-v0", Spaceless)
gymnasium.register("Asks-v0", "tests.envs.test_contract:Asks")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Seedless", r"its reset must take a seed, as reset\(self, \*, seed=None, options=None\)"),
        ("Seedless-v0", "its reset must take a seed"),
        ("Spaceless", "lacks a space: 'Spaceless' object has no attribute 'observation_space'"),
        ("Spaceless-v0", "lacks a space"),
        ("WordForASpace", "its action_space must be one of gymnasium.spaces, not 'two'"),
        ("Asks", r"needs `env_kwargs`: Asks.__init__\(\) missing 1 required .*'path'$"),
        ("Asks-v0", r"needs `env_kwargs`: Asks.__init__\(\) missing 1 required .*'path'$"),
        ("asking", r"needs `env_kwargs`: asking\(\) missing 1 required"),
        (
            "NoEnvironment",
            "made a NoEnvironment, not a gymnasium.Env: let its class inherit from gymnasium.Env",
        ),
    ],
)
def test_what_is_missing_is_told_before_anything_starts(name, said):
    with pytest.raises(InputError, match=said):
        resolve(f"{__name__}:{name}")


@pytest.mark.parametrize("name", ["Whole", "SeedAlone", "AnyKeyword"])
def test_a_reset_that_takes_a_seed_will_do(name):
    assert resolve(f"{__name__}:{name}").observation_space.shape == (2,)


def test_a_reset_that_does_not_say_what_it_takes_will_do(monkeypatch):
    def silent(function):
        raise ValueError("no signature found for builtin")

    monkeypatch.setattr(contract.inspect, "signature", silent)
    contract.check_takes_seed(Whole(), "Whole")


def test_a_call_within_the_constructor_is_not_mended_by_arguments():
    with pytest.raises(
        EnvironmentFailure, match=r"failed to start: TypeError: Asks.*line \d+ of test_contract.py"
    ):
        resolve(f"{__name__}:AsksInside")


def test_an_observation_of_another_size_in_a_later_step_is_refused(tmp_path):
    options = {"population": 4, "generations": 1, "workers": 0, "max_episode_steps": 5, "verbose": False}
    with pytest.raises(
        InputError, match=r"`step` gave an observation of shape \(1,\), where its space has \(2,\)"
    ):
        escalade.train(f"{__name__}:Shrinks", run_dir=tmp_path / "run", **options)
