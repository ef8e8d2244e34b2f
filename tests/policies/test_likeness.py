"""A user module that differs from the trained one is rejected, even if its parameters fit."""

import pytest
from torch import nn

import escalade
from escalade import InputError
from escalade.policies.modules import check_layers, layers_of


def net(activation=nn.Tanh):
    return nn.Sequential(nn.Linear(4, 5), activation(), nn.Linear(5, 2))


def test_different_layers_with_the_same_parameter_count_are_rejected(tmp_path):
    options = {"preset": None, "population": 4, "workers": 0, "generations": 2, "verbose": False}
    run = escalade.train("CartPole-v1", network=net(), run_dir=tmp_path / "run", **options)
    said = "trained module consists of Sequential, Linear, Tanh, Linear, but `network` of .*, ReLU, Linear;"
    for use in (escalade.load, escalade.evaluate, escalade.resume, escalade.export):
        with pytest.raises(InputError, match=said):
            use(run.folder.path, network=net(nn.ReLU))
    with pytest.raises(InputError, match=said):
        escalade.evaluate(run.folder.policy, network=net(nn.ReLU), episodes=1)
    with pytest.raises(InputError, match="but `network` of Linear; pass a module with the same layers"):
        escalade.resume(run.folder.path, network=nn.Linear(4, 2))
    lazy = nn.Sequential(nn.LazyLinear(5), nn.Tanh(), nn.Linear(5, 2))
    check_layers(lazy, layers_of(net()))
    assert escalade.resume(run, network=net(), generations=3, verbose=False).summary["generations"] == 3
