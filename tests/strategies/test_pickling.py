"""A strategy that was pickled, copied or saved by torch goes on as the one it was made from."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

from escalade.strategies.registry import STRATEGIES
from escalade.strategies.schedules import PopulationSchedule


def saved(thing):
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


WAYS = [copy.deepcopy, saved, lambda thing: pickle.loads(pickle.dumps(thing))]


def turns(strategy, generations=2):
    seen = []
    for _ in range(generations):
        members = np.asarray(strategy.ask())
        strategy.tell(-np.square(members).sum(axis=1))
        seen += [members.tobytes(), strategy.center.numpy().tobytes()]
    return seen


def own_sigma(generation):
    return 0.1


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_copy_goes_on_like_the_strategy(name, way):
    strategy = STRATEGIES[name].load()(np.ones(6), seed=3)
    turns(strategy)
    made = way(strategy)
    assert turns(made) == turns(strategy)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "options",
    [
        {"sigma": "exponential:0.1:0.9:0.01", "lr": "cosine:0.1:0.01:9"},
        {"sigma": own_sigma, "lr": "step:0.1:0.5:2"},
        {"lr": "linear:0.1:0.01:9", "optimizer": "sgd"},
        {"population": PopulationSchedule("linear:8:16:8").members(0)},
    ],
)
def test_so_do_schedules(options, way):
    strategy = STRATEGIES["openai-es"].load()(np.ones(6), **options)
    turns(strategy)
    assert turns(way(strategy)) == turns(strategy)
