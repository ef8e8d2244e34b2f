"""A strategy that was pickled, copied or saved by torch continues like the original."""

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


def run_generations(strategy, generations=2):
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
def test_copy_continues_like_the_original(name, way):
    strategy = STRATEGIES[name].load()(np.ones(6), seed=3)
    run_generations(strategy)
    made = way(strategy)
    assert run_generations(made) == run_generations(strategy)


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
def test_copy_with_schedules_continues_like_the_original(options, way):
    strategy = STRATEGIES["openai-es"].load()(np.ones(6), **options)
    run_generations(strategy)
    assert run_generations(way(strategy)) == run_generations(strategy)
