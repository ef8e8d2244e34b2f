"""The drawing and comparison of benchmarks/fuzz_runs.py; continuous integration does the runs."""

import importlib
import shlex

import pytest
from tests.commands import ROOT

from escalade.cli.main import make_parser
from escalade.envs import settle_backend
from escalade.strategies.registry import STRATEGIES
from escalade.training.parts import make_parts


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("fuzz_runs")


def test_a_seed_draws_the_same_configurations_of_every_strategy_policy_and_backend(fuzz):
    drawn = [fuzz.draw(3, index) for index in range(100)]  # Config checks each
    assert drawn == [fuzz.draw(3, index) for index in range(100)]
    assert len({config.seed for config in drawn}) == 100
    assert {config.strategy for config in drawn} == set(STRATEGIES)
    assert {config.policy for config in drawn} == set(fuzz.POLICIES)
    assert {config.env for config in drawn} == set(fuzz.LENGTHS)
    for name in ("cutoff", "episode_seeds", "snapshot_every", "action_noise", "lr"):
        assert len({getattr(config, name) for config in drawn}) >= 3 - (name == "action_noise"), name
    for name in ("shaping", "optimizer"):
        assert len({config.strategy_options.get(name) for config in drawn}) >= 3, name
    for name in ("min_episodes", "min_env_steps"):
        assert any(getattr(config, name) for config in drawn), name
    assert any(isinstance(config.population, str) for config in drawn)


def test_the_command_contains_the_whole_configuration(fuzz, tmp_path):
    words = fuzz.train(fuzz.draw(3, 0), 2, tmp_path / "run")
    parsed = vars(make_parser().parse_args(words[3:]))
    assert words[1:3] == ["-m", "escalade"]
    assert (parsed["env"], parsed["workers"], parsed["preset"]) == (fuzz.draw(3, 0).env, "2", "none")
    assert shlex.join(words[4:-4]) in fuzz.train_command(fuzz.draw(3, 0))


def test_the_earliest_difference_is_reported(fuzz):
    rows = [{"generation": str(index), "return_mean": "nan", "sigma": "0.1"} for index in (1, 2)]
    one = [{"params_sha256": "ab", "best_return": float("nan")}, *rows]
    other = [{"params_sha256": "ab", "best_return": float("nan")}, *rows]
    assert fuzz.difference(one, other) is None
    assert fuzz.difference(one, [other[0] | {"params_sha256": "cd"}, *rows]) == "params_sha256 is ab and cd"
    moved = [other[0], rows[0], rows[1] | {"sigma": "0.2"}]
    assert fuzz.difference(one, moved) == "sigma of generation 2 is 0.1 and 0.2"
    assert fuzz.difference(one, other[:2]) == "there are 2 and 1 rows"


def test_drawn_configurations_can_be_trained(fuzz):
    for index in range(15):
        config = fuzz.draw(2, index)
        assert settle_backend(make_parts(config).environment).backend == config.backend
