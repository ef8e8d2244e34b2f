"""User code in place of names: environments, wrappers and strategies."""

import functools
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import torch
from tests.commands import command, final_digest
from tests.environments import Offset, Tiny, Walk

import escalade
from escalade import InputError
from escalade.cli import main as cli
from escalade.config.files import read_config
from escalade.storage.run_folder import RunFolder
from escalade.strategies import CMAES
from escalade.strategies.gaussian import GaussianStrategy, differences

TINY = {"preset": None, "population": 4, "hidden": (3,), "generations": 2, "eval_episodes": 2}
TINY |= {"workers": 0, "verbose": False}


class Signs(GaussianStrategy):
    """Take steps of constant length along the signs of a running sum of gradients."""

    def __init__(
        self, x0, population=8, sigma=0.1, *, seed=0, direction="maximize", perturbation=None, keep=0.5
    ):
        super().__init__(x0, population, seed=seed, direction=direction, perturbation=perturbation)
        self._sigma, self.keep, self.sum = float(sigma), keep, self.center.clone().zero_()

    @property
    def sigma(self):
        return self._sigma

    def update(self, fitness):
        self.sum.mul_(self.keep).add_(self.noise_sum(differences(fitness)))
        self.center += self.sigma * self.sum.sign()

    def state_dict(self):
        return super().state_dict() | {"sum": self.sum.clone()}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.sum.copy_(state["sum"])


class Refuses(Signs):
    def __init__(self, *arguments, **keywords):
        raise RuntimeError("not today")


def not_a_strategy(x0, population, seed):
    return 3


def wrapped(length=12):
    return Offset(gymnasium.make("tests.environments:Walk-v0", length=length), by=0.5)


def not_an_environment():
    return 3


def train(folder, env=Walk, **options):
    return escalade.train(env, run_dir=folder, **TINY | options)


def test_training_on_a_class_equals_training_on_its_id(tmp_path):
    by_class = train(tmp_path / "a", max_episode_steps=10)
    by_id = train(tmp_path / "b", "tests.environments:Walk-v0", max_episode_steps=10)
    assert by_class.summary["params_sha256"] == by_id.summary["params_sha256"]
    assert read_config(by_class.folder).env == "tests.environments:Walk"
    np.testing.assert_array_equal(
        escalade.evaluate(by_class, episodes=3).returns, escalade.evaluate(by_id, episodes=3).returns
    )
    assert escalade.resume(by_class, generations=3, verbose=False).summary["generations"] == 3


def test_an_environment_may_be_a_function_that_applies_wrappers(tmp_path):
    run = train(
        tmp_path / "a", functools.partial(wrapped, length=5), wrappers=[functools.partial(Offset, times=2)]
    )
    config = read_config(run.folder)
    assert (config.env, config.env_kwargs) == ("tests.api.test_named:wrapped", {"length": 5})
    assert config.wrappers == ("tests.environments:Offset(times=2)",)
    plain = train(
        tmp_path / "b", "tests.environments:Walk-v0", env_kwargs={"length": 5}, wrappers=config.wrappers
    )
    assert plain.summary["params_sha256"] != run.summary["params_sha256"]  # by 0.5


def test_class_wrapper_and_strategy_named_on_the_command_line_resume_identically(tmp_path):
    flags = ["--preset", "none", "--population", "4", "--hidden", "3", "--workers", "2", "--sigma", "0.2"]
    flags += ["--strategy", "tests.api.test_named:Signs", "--strategy-options", '{"keep": 0.9}']
    flags += ["--wrap", "tests.environments:Offset(by=2)", "--run-dir", "run", "--generations"]
    first = command("train", "tests.environments:Walk", *flags, "4", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    options = {
        "strategy": Signs,
        "strategy_options": {"keep": 0.9},
        "sigma": 0.2,
        "wrappers": [functools.partial(Offset, by=2)],
    }
    half = train(tmp_path / "half", **options)
    whole = escalade.resume(half, generations=4, verbose=False)
    assert whole.summary["params_sha256"] == final_digest(tmp_path / "run")
    other = train(tmp_path / "other", generations=4, **options | {"strategy_options": {}})
    assert other.summary["params_sha256"] != final_digest(tmp_path / "run")
    assert RunFolder(tmp_path / "run").checkpoints.generations()


SCRIPT = """
import gymnasium, escalade

class Here(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 5
        return self.observation_space.low, {}
    def step(self, action):
        self.left -= 1
        return self.observation_space.low, float(action), self.left == 0, False, {}

class Around(gymnasium.Wrapper):
    pass

few = {"population": 4, "hidden": (2,), "generations": 1, "workers": 2, "verbose": False}
run = escalade.train(Here, wrappers=[Around], run_dir="run", **few)
run = escalade.resume(run, generations=2, verbose=False)
print(run.summary["generations"])
"""


def test_a_class_defined_in_a_script_reaches_its_workers(tmp_path, capsys):
    (tmp_path / "script.py").write_text(SCRIPT)
    how = {"capture_output": True, "text": True, "cwd": tmp_path, "timeout": 180}
    done = subprocess.run([sys.executable, "script.py"], check=False, **how)
    assert done.stdout == "2\n", done.stderr
    assert cli.main(["eval", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert (
        "unknown environment '__main__:Here': it was defined in a script; call escalade.evaluate" in message
    )
    assert message.count("\n") == 1
    page = escalade.report(tmp_path / "run", tmp_path / "page.html").read_text()
    assert "This run uses your own code" in page
    assert "escalade train __main__:Here" not in page


def local_environment():
    class Inner(Walk):
        pass

    return Inner


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"env": lambda: Walk("truncated")}, "`env` .*lambda.* cannot be imported by name"),
        (
            {"env": local_environment()},
            "`env` .*Inner cannot be imported by name.*; define it .*partial",
        ),
        ({"env": Walk()}, "`env` is an instance of Walk"),
        ({"strategy": CMAES(np.zeros(3))}, "`strategy` is an instance of CMAES; pass the class"),
        ({"policy": torch.nn.Linear(3, 1)}, "`policy` takes a name; pass a module of your own as `network`"),
        ({"env": not_an_environment}, "returned a int, not a gymnasium.Env"),
        ({"env": "tests.environments:Wolk"}, "unknown environment 'tests.environments:Wolk'"),
        ({"wrappers": [lambda env: env]}, "`wrappers` .*lambda"),
        ({"strategy": "tests.api.test_named:Sines"}, "has no Sines; did you mean Signs"),
        ({"strategy": "no.such:Class"}, "module no.such cannot be imported"),
        ({"strategy": not_a_strategy}, "takes no sigma|returned a int, not an escalade Strategy"),
        ({"strategy": Refuses}, "cannot be created: RuntimeError: not today"),
        ({"strategy": Signs, "lr": 0.1}, "takes no lr"),
        ({"strategy": Signs, "strategy_options": {"keeps": 1}}, "takes no keeps; did you mean keep"),
        ({"strategy": Signs, "strategy_options": {"sigma": 1}}, "sigma is an option of its own"),
        ({"strategy": "snes", "strategy_options": {"keep": 1}}, "SNES takes no keep"),
        ({"strategy": "escalade.strategies:CMAES", "min_episodes": 99}, "`min_episodes` does not work with"),
        ({"strategy": "escalade.strategies:CMAES", "population": "linear:8:16:9"}, "have one size"),
    ],
)
def test_mistakes_are_reported_in_one_line(options, message, tmp_path):
    with pytest.raises((InputError, escalade.EnvironmentFailure), match=message) as refused:
        train(tmp_path / "n", **options)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "n").exists()


BATCHES = {"box": (3,), "discrete": (), "multidiscrete": (2,), "multibinary": (4,), "picture": (1, 20, 22)}


@pytest.mark.parametrize("observation", [*BATCHES, "dict", "tuple"])
def test_acting_on_a_batch_equals_acting_on_each_observation(observation, tmp_path):
    kwargs = {"observation": observation, "action": "box32"}
    settings = {"strategy": "openai-es", "sigma": 0.05}
    policy = train(tmp_path / "n", Tiny, env_kwargs=kwargs, **settings).policy
    envs = gymnasium.vector.SyncVectorEnv([functools.partial(Tiny, observation, "box32")] * 3)
    seen, _ = envs.reset(seed=1)
    actions = policy.act(seen)
    assert actions.shape == (3, 2, 2)
    for row, one in enumerate(gymnasium.vector.utils.iterate(envs.observation_space, seen)):
        np.testing.assert_allclose(actions[row], policy.act(one), rtol=1e-5)


def test_each_episode_of_a_batch_has_its_own_recurrent_state(tmp_path):
    policy = train(tmp_path / "n", policy="gru").policy
    seen = np.random.default_rng(0).normal(size=(3, 2))
    twice = [policy.act(seen), policy.act(seen)]
    policy.reset(0)
    np.testing.assert_allclose(
        [policy.act(seen[1]), policy.act(seen[1])], [given[1] for given in twice], rtol=1e-5
    )
    with pytest.raises(InputError, match=r"the state is that of 1 episodes, not 3; call policy.reset"):
        policy.act(seen)
    policy.reset([0, 0, 0])
    np.testing.assert_array_equal(policy.act(seen), twice[0])
