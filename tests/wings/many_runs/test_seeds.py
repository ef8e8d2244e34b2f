"""``train`` with several seeds, from Python."""

import sys

import pytest
import torch
from tests.own_code import Features
from torch import nn

import escalade
from escalade import InputError
from escalade.config.options import Config
from escalade.wings.many_runs.seeds import user_code
from escalade.wings.many_runs.series import series_folder

TINY = {"preset": None, "population": 4, "workers": 0, "generations": 1, "max_episode_steps": 20}
TINY |= {"eval_episodes": 1, "verbose": False, "backend": "gymnasium"}


def test_runs_with_a_network_factory_have_their_own_policies(tmp_path):
    options = TINY | {"policy": "tests.own_code:Features", "run_dir": tmp_path / "runs"}
    for _ in range(2):  # the second time, all runs are finished
        runs = escalade.train("CartPole-v1", seeds=[0, 1], **options)
        assert [run.summary["seed"] for run in runs] == [0, 1]
        for run in runs:
            assert isinstance(run.policy.network, Features)
            read = escalade.load(run.folder.policy, Features(4, 2)).network.state_dict()
            for name, value in run.policy.network.state_dict().items():
                torch.testing.assert_close(value, read[name], rtol=0, atol=0)
        first, second = (run.policy.network.readout.weight for run in runs)
        assert not torch.equal(first, second)  # separate networks


def test_a_network_with_different_layers_starts_a_new_series(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"preset": None, "population": 4, "generations": 1, "workers": 0, "verbose": False}

    def folders(activation, seed):
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Linear(4, 3), activation, nn.Linear(3, 2))
        return [
            run.folder.path for run in escalade.train("CartPole-v1", network=network, seeds=[1], **options)
        ]

    first = folders(nn.Tanh(), 0)
    assert folders(nn.ReLU(), 0) != first
    assert folders(nn.Tanh(), 1) == first  # initial weights are random, so the series resumes


def test_classes_of_the_same_name_in_two_scripts_are_different(monkeypatch):
    config = Config(env="__main__:Mine")
    folders = []
    for script in ("a.py", "b.py"):
        monkeypatch.setattr(sys.modules["__main__"], "__file__", script, raising=False)
        folders.append(series_folder({"config": config}, None, user_code(config, None)))
    assert folders[0] != folders[1]
    plain = Config(env="CartPole-v1")
    assert series_folder({"config": plain}, None, user_code(plain, None)) == series_folder({"": plain}, None)


def test_a_run_of_evolve_in_the_folder_of_a_seed_is_refused(tmp_path):
    def fitness(module):
        return -float(module.weight.square().sum())

    first = escalade.train("CartPole-v1", run_dir=tmp_path / "first", policy="linear", **TINY)
    evolved = {"population": 4, "generations": 1, "run_dir": tmp_path / "runs" / "seed0"}
    escalade.evolve(nn.Linear(2, 1), fitness, **evolved)
    with pytest.raises(InputError, match=r"seed0 is a run of escalade\.evolve"):
        escalade.train("CartPole-v1", seeds=[0], start_from=first, run_dir=tmp_path / "runs", **TINY)
