"""Any nn.Module as a population: bit-identical in any batch and row, close to the module's own outputs."""

import numpy as np
import pytest
import torch
from tests.members import fill, load
from torch import nn

import escalade
from escalade import InputError
from escalade.policies.modules import map_state
from escalade.policies.networks import batched_network, from_vector, to_vector
from escalade.policies.population.torch_network import TorchNetwork

ROWS = 40  # more than one block


class Tied(nn.Module):
    """Uses one layer twice and ties a weight to another layer's."""

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


@pytest.fixture(params=MODULES)
def module(request):
    torch.manual_seed(1)
    return MODULES[request.param]()


def test_outputs_do_not_depend_on_the_batch_and_match_the_module(module):
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


def test_population_does_not_change_the_users_module(module):
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
        (nn.Sequential(nn.Linear(4, 3), nn.GELU()), "must return 2 numbers"),
        (nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Unflatten(1, (2, 2))), "must return 2 numbers"),
    ],
)
def test_modules_with_wrong_input_or_output_shapes_are_rejected(module, said):
    with pytest.raises(InputError, match=said):
        TorchNetwork(module).check((4,), 2)


def test_frozen_parameters_do_not_change():
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


class Recurrent(nn.Module):
    """Recurrence from torch's own layers, for which vmap has no rule."""

    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.layer, self.last = kind(4, 8), nn.Linear(8, 2)

    def initial_state(self, seed):
        start = torch.full((8,), 0.01 * (seed % 7))
        return (start, -start) if not isinstance(self.layer, nn.GRU) else start

    def forward(self, x, state):
        if isinstance(self.layer, nn.LSTMCell):
            after = self.layer(x, state)
            return self.last(after[0]), after
        wide = map_state(lambda part: part[None], state)
        out, after = self.layer(x[None], wide)
        return self.last(out[0]), map_state(lambda part: part[0], after)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x) if x.sum() > 0 else -self.layer(x)


class Draws(Branches):
    def forward(self, x):
        return super().forward(x) + torch.rand(1)


class Point(nn.Module):
    """Returns a view of a parameter, after a branch that vmap cannot batch."""

    def __init__(self):
        super().__init__()
        self.point = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return self.point.expand(len(x), -1) if x.sum() < np.inf else x


def test_members_whose_output_is_a_parameter_do_not_share_it():
    network = batched_network(Point())
    assert network.check((4,), 2).refusal
    forward, members = network.forward(3), np.arange(6, dtype=np.float32).reshape(3, 2)
    fill(forward, members)
    np.testing.assert_array_equal(forward(np.zeros((3, 4), np.float32)), members)


UNBATCHED = [Recurrent, lambda: Recurrent(nn.LSTMCell), lambda: Recurrent(nn.GRU), Branches]


@pytest.mark.parametrize("make", UNBATCHED)
def test_modules_that_vmap_cannot_batch_run_one_member_at_a_time(make):
    torch.manual_seed(3)
    module, rng = make(), np.random.default_rng(1)
    network = batched_network(module)
    assert network.check((4,), 2).refusal
    center = to_vector(module)
    members = (center + 0.1 * rng.normal(size=(ROWS, len(center)))).astype(np.float32)
    seen = rng.normal(size=(3, ROWS, 4)).astype(np.float32)
    many = network.forward(ROWS)
    for row, member in enumerate(members):
        load(many, row, member, row)
    outputs = [many(step) for step in seen]
    assert len(np.unique(outputs[2][:, 0])) == ROWS
    for row in (0, 1, 31, 32, 39):  # bit-identical alone in the first row
        one = network.forward(1)
        load(one, 0, members[row], row)
        for step, output in zip(seen, outputs, strict=True):
            np.testing.assert_array_equal(one(step[row : row + 1])[0], output[row])
    many.keep(np.array([5, 38]))
    after = many(seen[0][[5, 38]])
    one = network.forward(1)
    load(one, 0, members[38], 38)
    for step in (*seen, seen[0]):
        last = one(step[38:39])
    np.testing.assert_array_equal(last[0], after[1])


def test_run_of_an_unbatched_module_is_bit_identical_with_any_workers(tmp_path, capsys):
    digests = set()
    for workers in (0, 1, 2):
        torch.manual_seed(3)
        options = {"population": 10, "generations": 2, "seed": 1, "preset": None, "workers": workers}
        run = escalade.train("CartPole-v1", network=Recurrent(), run_dir=tmp_path / f"{workers}", **options)
        digests.add(run.summary["params_sha256"])
        assert "vmap cannot batch it (Batching rule not implemented for aten::lstm" in capsys.readouterr().out
    assert len(digests) == 1


class Stepped(nn.Module):
    """The stateful module from the guide, around one of torch's cells."""

    def __init__(self, kind):
        super().__init__()
        self.cell, self.out = kind(4, 5), nn.Linear(5, 2)

    def initial_state(self, seed):
        hidden = torch.zeros(5)
        return (hidden, hidden) if isinstance(self.cell, nn.LSTMCell) else hidden

    def forward(self, x, state):
        state = self.cell(x, state)
        return self.out(state[0] if isinstance(state, tuple) else state), state


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("kind", "perturbation", "named"),
    [
        (nn.GRUCell, "full", "(gru_cell); a `Chain` (escalade.policies.modules) runs"),
        (nn.LSTMCell, "full", "aten::lstm_cell. We could not generate a fallback.); a `Chain`"),
        (nn.GRUCell, "low-rank:1", None),
    ],
)
@pytest.mark.filterwarnings("error")
def test_cells_run_without_torch_warnings_and_with_one_note(
    kind, perturbation, named, workers, tmp_path, capfd
):
    options = {"population": 4, "generations": 2, "seed": 1, "preset": None, "workers": workers}
    escalade.train(
        "CartPole-v1", network=Stepped(kind), run_dir=tmp_path / "run", perturbation=perturbation, **options
    )
    said = "".join(capfd.readouterr())
    assert "performance drop" not in said
    assert said.count("torch.func.vmap cannot batch it") == (named is not None)
    assert named is None or named in said


class Counts(nn.Module):
    """Could be batched if it did not store a number between calls."""

    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 2), 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) * self.calls


class Stateful(Branches):
    """Lacks ``initial_state``."""

    def forward(self, x, state=None):
        return self.layer(x), state


def test_module_that_lacks_initial_state_is_rejected():
    with pytest.raises(InputError, match=r"needs a method `initial_state\(seed\)`"):
        TorchNetwork(Stateful()).check((4,), 2)


@pytest.mark.parametrize("make", [Draws, Counts])
def test_modules_with_hidden_state_or_random_draws_are_rejected(make):
    with pytest.raises(InputError, match="returns different outputs for the same input"):
        TorchNetwork(make()).check((4,), 2)


@pytest.mark.parametrize("hidden", [(9, 5), (17, 33), (45, 65), (27, 18)])
def test_members_with_odd_hidden_sizes_are_bit_identical_in_any_row(hidden):
    features, units = hidden
    module = nn.Sequential(nn.Linear(features, units), nn.Tanh(), nn.Linear(units, 3))
    network, random = TorchNetwork(module), np.random.default_rng(1)
    members = random.normal(size=(ROWS, network.dimension)).astype(np.float32)
    seen = random.normal(size=(ROWS, features)).astype(np.float32)

    def outputs(order):
        forward = network.forward(ROWS)
        forward.begin(None)
        for row, member in enumerate(order):
            load(forward, row, members[member])
        return forward(seen[order]).copy()

    expected, order = outputs(np.arange(ROWS)), random.permutation(ROWS)
    np.testing.assert_array_equal(outputs(order), expected[order])
    np.testing.assert_array_equal(outputs(np.arange(5, ROWS)), expected[5:])
