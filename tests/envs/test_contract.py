"""Errors of user environments that violate Gymnasium's API."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.experimental.functional import FuncEnv

import escalade
from escalade.envs import resolve, vectorize
from escalade.errors import InputError


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


class Asks(Whole):
    def __init__(self, path):
        self.path = path


class Shrinks(Whole):
    """Returns one number of two in its second step, which NumPy would broadcast."""

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        return np.zeros(2 if self.steps < 2 else 1, np.float32), 1.0, False, False, {}


class NoEnvironment:
    observation_space, action_space = Whole.observation_space, Whole.action_space


class Picky(Whole):
    """Refuses a value in its constructor."""

    def __init__(self, size=1):
        if size > 2:
            raise ValueError("no such size")


class Vectorized(gymnasium.vector.VectorEnv):
    pass


class Functional(FuncEnv):
    pass


class OldEnv:
    """The old gym's class, which is not installed here."""

    __module__ = "gym.core"


class Old(OldEnv):
    pass


class Several:
    possible_agents = ("red", "blue")


def made_by_function():
    return Several()


FOREIGN = {
    "Vectorized": "a VectorEnv: make it take `num_envs` and `device`",
    "Functional": "a FuncEnv, but functional environments are not supported",
    "Old": "of the old gym: wrap it in shimmy",
    "Several": "several agents",
    "made_by_function": "returned a Several, an environment of several agents",
}
for name in FOREIGN:
    gymnasium.register(f"{name}-v0", f"tests.envs.test_contract:{name}")
gymnasium.register("NoEnvironment-v0", "tests.envs.test_contract:NoEnvironment")


@pytest.mark.parametrize(
    ("name", "kwargs", "said"),
    [
        ("Asks", {}, r"failed to start: TypeError: Asks.__init__\(\) missing 1 required .*'path'"),
        ("NoEnvironment", {}, "returned a NoEnvironment, not a gymnasium.Env: let its class inherit"),
        ("NoEnvironment-v0", {}, "returned a NoEnvironment, not a gymnasium.Env: let its class inherit"),
        (
            "Picky",
            {"size": 3},
            r"with `env_kwargs` \{'size': 3\}: ValueError: no such size",
        ),
        (
            "Picky",
            {"sise": 1},
            r"`env_kwargs` \{'sise': 1\}: TypeError: .* argument 'sise'",
        ),
    ],
)
def test_missing_methods_raise_before_the_run_starts(name, kwargs, said):
    with pytest.raises(InputError, match=said):
        resolve(f"{__name__}:{name}", kwargs)


@pytest.mark.parametrize("end", ["", "-v0"])
@pytest.mark.parametrize("name", FOREIGN)
def test_objects_that_are_not_environments_are_described(name, end):
    with pytest.raises(InputError, match=FOREIGN[name]):
        resolve(f"{__name__}:{name}{end}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "Shrinks",
            r"Shrinks: `step` returned an observation of shape \(1,\), but its space has \(2,\)",
        ),
        ("Seedless", r"environment Seedless raised TypeError: .* unexpected keyword argument 'seed'"),
    ],
)
def test_an_invalid_environment_ends_training_in_one_line(name, said, tmp_path):
    options = {"population": 4, "generations": 1, "workers": 0, "max_episode_steps": 5, "verbose": False}
    with pytest.raises(escalade.EscaladeError, match=said):
        escalade.train(f"{__name__}:{name}", run_dir=tmp_path / "run", **options)


@pytest.mark.parametrize("name", ["same", "same_in_wrappers", "same_by_hand", "Twice"])
def test_one_object_for_all_episodes_raises(name, tmp_path):
    environment = resolve(f"tests.environments:{name}")
    with pytest.raises(InputError, match=r"^environment .* object was returned twice, .* in every call$"):
        vectorize(environment, 2).reset(np.arange(2), np.arange(2))
    with pytest.raises(InputError, match="object was returned twice"):
        escalade.train(f"tests.environments:{name}", run_dir=tmp_path / "run", workers=0, verbose=False)
