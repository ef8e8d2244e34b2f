"""The fork server's preloaded modules, requested before this process imports torch."""

import pytest
from torch import nn

import escalade
from escalade.api import opening as warm
from escalade.cli import results
from escalade.cli.main import parse
from escalade.config.options import Config


@pytest.fixture
def asked(monkeypatch):
    calls = []
    monkeypatch.setattr(warm, "warm_up", lambda modules, variables: calls.append((modules, variables)))
    return calls


@pytest.mark.parametrize(
    ("options", "network", "torch"),
    [
        ({}, None, False),
        ({"policy": "tests.own_code:Features"}, None, True),
        ({}, nn.Linear(4, 2), True),
    ],
)
def test_torch_is_preloaded_if_the_policy_may_need_it(options, network, torch, asked):
    warm.warm_up_for(Config(env="CartPole-v1", workers=2, **options), network)
    [(modules, _)] = asked
    assert ("escalade.policies.population.torch_network" in modules) == torch


def test_the_family_of_the_environment_is_preloaded(asked):
    warm.warm_up_for(Config(env="CartPole-v1", workers=2))
    warm.warm_up_for(Config(env="CartPole-v1", workers=2, backend="gymnasium"))
    assert [variables for _, variables in asked] == [{"ESCALADE_PRELOADED_ENVIRONMENT": "CartPole-v1"}, {}]


def test_mujoco_is_preloaded_for_tasks_of_the_mujoco_backend(asked):
    warm.warm_up_for(Config(env="Reacher-v5", workers=2))
    warm.warm_up_for(Config(env="Reacher-v5", workers=2, backend="envpool"))
    warm.warm_up_for(Config(env="Ant-v5", workers=2))
    assert [("escalade.envs.mujoco.preload" in modules, bool(variables)) for modules, variables in asked] == [
        (True, False),
        (False, True),
        (False, True),
    ]


@pytest.mark.parametrize(("typed", "calls"), [(["--workers", "0"], 0), (["--workers", "2"], 1)])
def test_eval_preloads_according_to_its_options(typed, calls, asked, tmp_path):
    options = {"preset": None, "population": 4, "workers": 0, "generations": 1, "verbose": False}
    run = escalade.train("CartPole-v1", run_dir=tmp_path / "run", **options)
    parsed = parse(["eval", str(run.folder.path), *typed])
    results._find_policy(parsed, {"workers": int(typed[1])})
    assert len(asked) == calls


@pytest.mark.parametrize("options", [{"workers": 0}, {"engine": "threads", "workers": 2}])
def test_no_fork_server_is_started_if_not_needed(options, asked):
    warm.warm_up_for(Config(env="CartPole-v1", **options))
    assert asked == []
