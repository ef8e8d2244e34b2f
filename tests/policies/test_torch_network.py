"""Any nn.Module as a population: the same bits in any batch and row, and the module's own numbers."""

import numpy as np
import pytest
import torch
from tests.members import load
from torch import nn

from escalade import InputError
from escalade.policies.networks import batched_network, from_vector, to_vector
from escalade.policies.torch_network import TorchNetwork

ROWS = 40  # more than one block


class Tied(nn.Module):
    """The same layer twice, and a weight of another's."""

    def __init__(self):
        super().__init__()
        self.inner, self.last, self.mirror = nn.Linear(4, 4), nn.Linear(4, 4, bias=False), nn.Linear(4, 4)
        self.mirror.weight = self.last.weight
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.mirror(self.last(torch.tanh(self.inner(torch.tanh(self.inner(x)))))) * self.scale


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("shift", torch.arange(4.0))
        self.register_buffer("passing", torch.ones(4), persistent=False)

    def forward(self, x):
        return self.layer(x + self.shift) * self.passing


def norm():
    batch = nn.BatchNorm1d(6)
    batch.running_mean += 0.3
    batch.running_var *= 2.0
    return nn.Sequential(nn.Linear(4, 6), batch, nn.ReLU(), nn.Linear(6, 4))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(1, 3), nn.Linear(1, 3), nn.Linear(1, 1)

    def forward(self, x):
        q, k, v = self.query(x[..., None]), self.key(x[..., None]), self.value(x[..., None])
        return (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).squeeze(-1)


MODULES = {
    "layer norm": lambda: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4)),
    "tied": Tied,
    "buffers": Buffered,
    "batch norm": norm,
    "dropout": lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 4)),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 3, 3, padding=1), nn.Flatten(), nn.Linear(12, 4)
    ),
    "attention": Attention,
    "elu of its own": lambda: nn.Sequential(nn.Linear(4, 8), nn.ELU(0.5), nn.Linear(8, 4)),
}


def fill(forward, members):
    """Give the first members theirs."""
    for row, vector in enumerate(members):
        load(forward, row, vector)


@pytest.fixture(params=MODULES)
def module(request):
    torch.manual_seed(1)
    return MODULES[request.param]()


def test_outputs_do_not_depend_on_the_batch_and_are_the_modules(module):
    network = batched_network(module)
    assert isinstance(network, TorchNetwork)
    chance = np.random.default_rng(2)
    members = chance.normal(size=(ROWS, network.dimension)).astype(np.float32)
    seen = chance.normal(size=(ROWS, 4)).astype(np.float32)
    forward = network.forward(ROWS)
    fill(forward, members)
    together = forward(seen).copy()
    assert together.shape == (ROWS, 4)
    for count in (1, 5, 33):
        rows = chance.permutation(ROWS)[:count]
        fill(forward, members[rows])
        np.testing.assert_array_equal(forward(seen[rows]), together[rows])
    fill(forward, members)
    forward.keep(np.array([3, 38]))
    np.testing.assert_array_equal(forward(seen[[3, 38]]), together[[3, 38]])
    module.eval()
    for row in (0, 17, 39):
        from_vector(module, members[row])
        with torch.no_grad():
            expected = module(torch.from_numpy(seen[row : row + 1])).numpy()[0]
        np.testing.assert_allclose(together[row], expected, rtol=1e-4, atol=1e-4)


def test_vectors_go_there_and_back(module):
    vector = np.random.default_rng(0).normal(size=batched_network(module).dimension).astype(np.float32)
    from_vector(module, vector)
    np.testing.assert_array_equal(to_vector(module), vector)


def test_a_population_leaves_the_users_module_alone(module):
    before = {name: value.clone() for name, value in module.state_dict().items()}
    training = module.training
    network = batched_network(module)
    forward = network.forward(2)
    fill(forward, np.full((2, network.dimension), 9.0))
    forward(np.ones((2, 4), np.float32))
    assert module.training == training
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(parameter.requires_grad for parameter in module.parameters())


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (nn.Sequential(nn.Linear(5, 4), nn.GELU()), "fails on a batch of 4 numbers"),
        (nn.Sequential(nn.Linear(4, 3), nn.GELU()), "must give 2 numbers"),
        (nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Unflatten(1, (2, 2))), "must give 2 numbers"),
    ],
)
def test_a_module_that_does_not_fit_is_refused(module, said):
    with pytest.raises(InputError, match=said):
        TorchNetwork(module).check((4,), 2)


def test_frozen_parameters_stay_as_they_are():
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    module[0].requires_grad_(False)
    network = batched_network(module)
    assert isinstance(network, TorchNetwork)
    assert network.dimension == 3 * 2 + 2 == len(to_vector(module))
    before = module[0].weight.clone()
    from_vector(module, np.ones(network.dimension, np.float32))
    assert torch.equal(module[0].weight, before)
    forward = network.forward(1)
    fill(forward, np.ones((1, network.dimension)))
    seen = np.ones((1, 4), np.float32)
    expected = module(torch.from_numpy(seen)).detach().numpy()
    np.testing.assert_allclose(forward(seen), expected, rtol=1e-5)


def test_the_callers_threads_are_left_as_they_are():
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        forward = batched_network(MODULES["layer norm"]()).forward(2)
        assert torch.get_num_threads() == 2
        forward(np.ones((2, 4), np.float32))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
