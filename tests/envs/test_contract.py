"""Environments of the user's that lack what Gymnasium asks of one: each is told in one line."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.experimental.functional import FuncEnv
from tests.environments import ByHand

import escalade
from escalade.envs import contract, resolve, vectorize
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


class Foreign:
    """An environment of another library, whose reset takes no seed."""

    def reset(self, key):
        return key


class Adapter(Whole):
    """Adapts one, and calls it ``unwrapped``, as Jumanji's does."""

    @property
    def unwrapped(self):
        return Foreign()


class SeedlessInside(ByHand):
    def __init__(self):
        super().__init__(Seedless())


class Circular(Whole):
    """Is still there when nothing else holds it."""

    def __init__(self):
        self.me = self


class AllEqual(Whole):
    __hash__ = None

    def __eq__(self, other):
        return True


def wrapped_adapter():
    return gymnasium.wrappers.TimeLimit(Adapter(), 3)


def wrapped():
    return gymnasium.wrappers.TimeLimit(Circular(), 3)


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


class Picky(Whole):
    """Refuses a value in its constructor, or fails within it."""

    def __init__(self, size=1):
        if size > 2:
            raise ValueError("no such size")
        Asks()


gymnasium.register("Seedless-v0", Seedless)
gymnasium.register("Spaceless-v0", Spaceless)
gymnasium.register("VectorOnly-v0", vector_entry_point="tests.envs.test_contract:Vectorized")
for name in ("Vectorized", "Functional", "Old", "Several", "made_by_function"):
    gymnasium.register(f"{name}-v0", f"tests.envs.test_contract:{name}")
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


ADAPTED = ["Adapter", "wrapped_adapter", "SeedlessInside"]


FOREIGN = {
    "Vectorized": "a VectorEnv, and vector environments are not supported yet",
    "Functional": "a FuncEnv, and functional environments are not supported yet",
    "Old": "of the old gym: wrap it in shimmy",
    "Several": "several agents",
    "made_by_function": "made a Several, an environment of several agents",
}


@pytest.mark.parametrize("end", ["", "-v0"])
@pytest.mark.parametrize("name", FOREIGN)
def test_an_environment_of_another_kind_is_named(name, end):
    with pytest.raises(InputError, match=FOREIGN[name]):
        resolve(f"{__name__}:{name}{end}")


def test_an_environment_that_steps_vectors_alone_is_not_supported_yet():
    with pytest.raises(InputError, match=r"only .* vector environment .* not supported yet"):
        resolve(f"{__name__}:VectorOnly-v0")


def test_a_value_that_a_constructor_refuses_is_not_an_argument_that_does_not_fit():
    said = (
        r"failed to start with `env_kwargs` \{'size': 3\}: ValueError: no such size \(line \d+ of test_contr"
    )
    with pytest.raises(InputError, match=said):
        resolve(f"{__name__}:Picky", {"size": 3})
    with pytest.raises(InputError, match=r"failed to start with .*: TypeError: Asks.__init__\(\) missing"):
        resolve(f"{__name__}:Picky", {"size": 1})
    with pytest.raises(InputError, match=r"`env_kwargs` \{'sise': 1\} do not fit"):
        resolve(f"{__name__}:Picky", {"sise": 1})


@pytest.mark.parametrize("name", ["Whole", "SeedAlone", "AnyKeyword", *ADAPTED])
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


SHARED = ["same", "same_in_wrappers", "same_by_hand", "Adapter", "Twice", "Twice-v0"]


@pytest.mark.parametrize("name", SHARED)
def test_one_object_for_all_episodes_is_refused(name):
    with pytest.raises(InputError, match=r"^environment .* object was returned twice, .* in every call$"):
        resolve(f"tests.environments:{name}")


def test_one_object_behind_a_wrapper_is_refused():
    with pytest.raises(InputError, match="the same Walk object was returned twice"):
        resolve("tests.environments:Walk-v0", wrappers=["tests.environments:wrap_same"])


@pytest.mark.parametrize("name", ["Circular", "AllEqual", "wrapped"])
def test_objects_that_are_held_or_equal_are_not_the_same(name):
    vectorize(resolve(f"{__name__}:{name}"), 3).reset(np.arange(3), np.arange(3))


def train(tmp_path):
    escalade.train("tests.environments:same", run_dir=tmp_path / "run", verbose=False)


def check(tmp_path):
    escalade.check("tests.environments:same")


def evaluator(tmp_path):
    qd = pytest.importorskip("escalade.qd")
    qd.evaluator("tests.environments:same", behaviour="observation:0")


@pytest.mark.parametrize("use", [train, check, evaluator])
def test_it_is_refused_by_whoever_uses_it(use, tmp_path):
    with pytest.raises(InputError, match="the same Walk object was returned twice"):
        use(tmp_path)
    assert not (tmp_path / "run").exists()
