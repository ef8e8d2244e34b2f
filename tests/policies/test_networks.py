"""Networks: construction, initialization, recognition as stacks, and flattening."""

import numpy as np
import pytest
import torch
from tests.members import load
from tests.own_code import Features, Negated
from torch import nn
from torch.nn.utils import prune

from escalade import InputError
from escalade.policies.networks import (
    batched_network,
    build,
    from_vector,
    frozen_state,
    load_frozen_state,
    to_vector,
)
from escalade.policies.population.stack import Stack
from escalade.policies.population.torch_network import TorchNetwork


def factory(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 3), nn.Dropout(0.5), nn.Linear(3, outputs))


@pytest.mark.parametrize("init", ["normc", "xavier", "orthogonal", "zeros"])
def test_initialization_depends_only_on_the_seed(init):
    torch.manual_seed(0)
    first = to_vector(build("mlp", 6, 3, init=init, seed=4))
    torch.manual_seed(99)
    before = torch.get_rng_state()
    again = to_vector(build("mlp", 6, 3, init=init, seed=4))
    other = to_vector(build("mlp", 6, 3, init=init, seed=5))
    np.testing.assert_array_equal(first, again)
    assert np.array_equal(first, other) == (init == "zeros")
    assert init == "zeros" or np.abs(first).max() > 0
    assert before.shape == torch.get_rng_state().shape


def test_normc_and_orthogonal_have_the_documented_norms():
    first, _, last = build("mlp", 6, 3, hidden=(4,), init="normc")
    torch.testing.assert_close(first.weight.norm(dim=1), torch.ones(4))
    torch.testing.assert_close(last.weight.norm(dim=1), torch.full((3,), 0.01))
    first, _, last = build("mlp", 6, 3, hidden=(4,), init="orthogonal")
    torch.testing.assert_close(first.weight @ first.weight.T, torch.eye(4))
    torch.testing.assert_close(last.weight @ last.weight.T, 1e-4 * torch.eye(3))
    assert not first.bias.any()


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(3, 2),
        nn.Sequential(nn.Linear(3, 4, bias=False), nn.SELU(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2), nn.Tanh()),
    ],
)
def test_plain_stacks_are_recognized(module):
    assert isinstance(batched_network(module), Stack)


def shared():
    layer = nn.Linear(3, 3)
    return nn.Sequential(layer, nn.Tanh(), layer)


def tied_weights():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), second)


def parameter_of_the_sequence():
    module = nn.Sequential(nn.Linear(3, 3))
    module.register_parameter("gain", nn.Parameter(torch.ones(3)))
    return module


def pruned():
    layer = nn.Linear(3, 3)
    prune.l1_unstructured(layer, "weight", 0.5)
    return nn.Sequential(layer)


def hooked():
    layer = nn.Linear(3, 2)
    layer.register_forward_hook(lambda module, given, output: -output)
    return nn.Sequential(layer)


def patched():
    layer = nn.Linear(3, 2)
    layer.forward = lambda x: -nn.functional.linear(x, layer.weight, layer.bias)
    return nn.Sequential(layer)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


SPECIAL = {
    "tied weights": tied_weights,
    "the same layer twice": shared,
    "a parameter of the sequence": parameter_of_the_sequence,
    "weight norm": lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))),
    "orthogonal": lambda: nn.Sequential(nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))),
    "pruned": pruned,
    "a hook": hooked,
    "a subclass": lambda: nn.Sequential(Doubled(3, 3), nn.Tanh()),
    "a subclass of the sequence": lambda: Negated(nn.Linear(3, 2)),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # from torch's vmap over weight norm
@pytest.mark.parametrize("name", SPECIAL)
def test_member_outputs_equal_the_module_with_their_parameters(name):
    torch.manual_seed(3)
    module = SPECIAL[name]()
    network = batched_network(module)
    assert isinstance(network, TorchNetwork)
    chance = np.random.default_rng(0)
    forward = network.forward(3)
    members = chance.normal(size=(3, network.dimension)).astype(np.float32)
    seen = chance.normal(size=(3, 3)).astype(np.float32)
    for row, member in enumerate(members):
        load(forward, row, member)
    found = forward(seen).copy()
    for row, member in enumerate(members):
        from_vector(module, member)
        with torch.no_grad():
            expected = module(torch.from_numpy(seen[row : row + 1])).numpy()[0]
        np.testing.assert_allclose(found[row], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(3, 2), nn.GELU()),
        nn.Sequential(nn.Linear(3, 2), nn.ELU(0.5)),
        nn.Sequential(nn.Tanh(), nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Tanh()),
        nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)),
        patched(),
    ],
)
def test_other_modules_use_the_general_path(module):
    assert isinstance(batched_network(module), TorchNetwork)


def test_parameter_vector_round_trips():
    for module in (build("mlp", 5, 2), build("mlp", 5, 2, bias=False), factory(5, 2)):
        vector = np.arange(len(to_vector(module)), dtype=np.float32)
        from_vector(module, vector)
        np.testing.assert_array_equal(to_vector(module), vector)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (nn.Tanh(), "no parameters"),
        (nn.Linear(2, 2).double(), "float32"),
        (nn.Linear(2, 2).half(), "float32"),
        (nn.Linear(2, 2).requires_grad_(False), "only frozen parameters"),
    ],
)
def test_modules_that_cannot_be_trained_are_rejected(module, said):
    with pytest.raises(InputError, match=said):
        batched_network(module)


def test_factory_builds_the_network():
    network = build(f"{__name__}:factory", 4, 2)
    assert isinstance(network, nn.Sequential)
    assert not network.training
    for policy, said in [("no_such:x", "no_such"), (f"{__name__}:missing", "missing"), ("math:gcd", "int")]:
        with pytest.raises(InputError, match=said):
            build(policy, 4, 2)


def test_factory_network_depends_only_on_the_seed():
    rolled = torch.get_rng_state()
    first, again, other = (
        build("tests.own_code:Features", 3, 2, seed=seed).state_dict() for seed in (4, 4, 5)
    )
    assert torch.equal(torch.get_rng_state(), rolled)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_untrained_values_can_be_read_and_restored():
    first, other = Features(3, 2), Features(3, 2)
    assert set(frozen_state(first)) == {"features.weight", "features.bias", "shift"}
    assert frozen_state(nn.Sequential(nn.Linear(3, 2))) == {}
    load_frozen_state(other, frozen_state(first))
    from_vector(other, to_vector(first))
    seen = torch.rand(5, 3)
    assert torch.equal(other(seen), first(seen))
    with pytest.raises(InputError, match=r"frozen parameters and buffers \(none\) are not those"):
        load_frozen_state(nn.Linear(3, 2), frozen_state(first))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float8_e5m2, torch.bool])
def test_buffers_of_any_dtype_can_be_read_and_restored(kind):
    first, other = nn.Linear(3, 2), nn.Linear(3, 2)
    numbers = torch.tensor([0.0, 1.0, 1.5, -2.0]).to(kind)
    first.register_buffer("table", numbers.clone())
    other.register_buffer("table", torch.zeros(4).to(kind))
    taken = frozen_state(first)["table"]
    first.table.zero_()
    load_frozen_state(other, {"table": taken})
    assert other.table.dtype == kind
    assert torch.equal(other.table.double(), numbers.double())
