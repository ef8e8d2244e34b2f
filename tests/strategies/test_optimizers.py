"""Optimizers of the center: bit-identical to torch's, without the imports of torch.optim."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from tests.commands import DEADLINE

from escalade.errors import InputError
from escalade.perturbation import NoiseTable
from escalade.strategies import PGPE, OpenAIES
from escalade.strategies.optimizers import NAMED, SGD
from escalade.strategies.tensors import load_strategy, save_strategy

TABLE = NoiseTable(3, 2**15)


def torch_sgd(params, momentum):
    """Return SGD whose velocity is a mean of gradients from the first step."""
    params = list(params)
    optimizer = torch.optim.SGD(params, lr=0.01, momentum=momentum, dampening=momentum)
    for parameter in params:
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer


PEERS = {
    "adam": partial(torch.optim.Adam, lr=0.01, fused=True),
    "sgd": partial(torch_sgd, momentum=0.9),
}


def run(strategy, generations):
    for _ in range(generations):
        strategy.tell(-((strategy.ask().double() - 0.3) ** 2).sum(dim=1))
    return strategy


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("make", [OpenAIES, PGPE])
def test_named_optimizers_are_bit_identical_to_torchs(name, make):
    common = {
        "population": 16,
        "sigma": 0.1,
        "lr": "cosine:0.1:0.02:9",
        "weight_decay": 0.01,
        "perturbation": TABLE,
    }
    ours = run(make(np.zeros(37), optimizer=name, **common), 12)
    peer = run(make(np.zeros(37), optimizer=PEERS[name], **common), 12)
    assert torch.equal(ours.center, peer.center)
    assert ours.state_dict().keys() == peer.state_dict().keys()
    for key, value in peer.state_dict().items():
        assert torch.equal(torch.as_tensor(ours.state_dict()[key]), torch.as_tensor(value)), key


def test_sgd_without_momentum_is_plain_gradient_descent():
    es = OpenAIES(np.zeros(5), 8, optimizer=partial(SGD, momentum=0.0), lr=0.5, perturbation=TABLE)
    peer = OpenAIES(np.zeros(5), 8, optimizer=partial(torch.optim.SGD, lr=0.5), perturbation=TABLE)
    assert torch.equal(run(es, 4).center, run(peer, 4).center)
    assert not any(key.startswith("optimizer.") for key in es.state_dict())


def test_invalid_optimizer_is_rejected():
    for optimizer in ("adamm", 3, lambda params: None, torch.optim.Adam([torch.zeros(1)])):
        with pytest.raises(InputError, match="optimizer"):
            OpenAIES(np.zeros(5), 8, optimizer=optimizer)


def test_state_of_a_different_optimizer_is_rejected_and_changes_nothing():
    before = OpenAIES(np.zeros(5), 8, optimizer="sgd", perturbation=TABLE)
    saved = run(OpenAIES(np.zeros(5), 8, optimizer="adam", perturbation=TABLE), 3).state_dict()
    with pytest.raises(InputError, match="different optimizer"):
        before.load_state_dict(saved)
    assert (before.generation, float(before.center.abs().sum())) == (0, 0.0)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean clipup"):
        OpenAIES(np.zeros(5), 8, optimizer="clipupp")


SCRIPT = """
import sys
import torch
import escalade
for options in {options}:
    escalade.train("CartPole-v1", preset=None, population=4, hidden=[4], generations=3, workers=0,
                   max_episode_steps=20, eval_episodes=2, verbose=False, **options)
escalade.evolve(torch.nn.Linear(2, 1), lambda module: -float(module.weight.sum()), population=4,
                generations=2, workers=0)
print("torch._dynamo" in sys.modules)
"""


def test_training_does_not_import_the_torch_compiler(tmp_path):
    options = [{"strategy": f"openai-es:optimizer={name}"} for name in NAMED]
    options += [{"strategy": "pgpe"}, {"strategy": "snes"}, {}]
    script = SCRIPT.format(options=options)
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert ran.stdout.strip() == "False"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["Adagrad", "AdamW", "ASGD", "RAdam", "SGD"])
def test_resumed_torch_optimizers_are_bit_identical(name, dtype):
    def made():
        return OpenAIES(torch.ones(5, dtype=dtype), 8, optimizer=partial(make, lr=0.1), perturbation=TABLE)

    make = getattr(torch.optim, name)
    whole, first, second = made(), run(made(), 3), made()
    second.load_state_dict(first.state_dict())
    assert torch.equal(run(second, 3).center, run(whole, 6).center)


@pytest.mark.parametrize("make", [partial(OpenAIES, lr=0.1), partial(PGPE, lr=0.1)], ids=["adam", "clipup"])
def test_one_diverged_fitness_leaves_the_optimizer_state_finite(make):
    es = make(np.full(3, 0.5), 20, sigma=0.1, shaping="raw", perturbation=TABLE)
    fitness = -((es.ask().double() - 1) ** 2).sum(dim=1)
    fitness[4] = -1e24
    es.tell(fitness)
    memory = es.optimizer.memory
    assert all(bool(value.isfinite().all()) for value in memory.values())
    assert es.update_ratio != 0
    before = es.center.clone()
    run(es, 1)
    assert not torch.equal(es.center, before)


def test_optimizer_that_maximizes_is_rejected():
    with pytest.raises(InputError, match="must not maximize"):
        OpenAIES(np.zeros(5), 8, optimizer=partial(torch.optim.SGD, lr=0.1, maximize=True))


class Counting(torch.optim.Optimizer):
    """Shortens its steps by a count in its parameter group, like schedule-free optimizers."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1, "count": 0, "sum": 0.0, "betas": (0.9, 0.99), "amsgrad": False})

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        group["count"] += 1
        group["sum"] += group["lr"] / group["count"]
        group["params"][0].add_(group["params"][0].grad, alpha=-group["sum"] / group["count"])


@pytest.mark.parametrize("saved_after", [0, 3])
def test_resumed_optimizer_that_counts_in_its_group_is_bit_identical(saved_after):
    whole, cut = (OpenAIES(np.zeros(5), 8, optimizer=Counting, perturbation=TABLE) for _ in range(2))

    def go_on(es, generations):
        for _ in range(generations):
            es.tell(es.ask().square().sum(dim=1))

    go_on(whole, 6)
    go_on(cut, saved_after)
    again = OpenAIES(np.zeros(5), 8, optimizer=Counting, perturbation=TABLE)
    load_strategy(again, *save_strategy(cut))
    go_on(again, 6 - saved_after)
    assert torch.equal(again.center, whole.center)
