"""Networks: how they are built, initialised, recognised as stacks, and flattened."""

import numpy as np
import pytest
import torch
from tests.own_code import Features, Negated
from torch import nn

from escalade import InputError
from escalade.policies.networks import build, fixed, from_vector, set_fixed, shape, to_vector
from escalade.policies.stack import Stack
from escalade.policies.torch_network import TorchNetwork


def factory(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 3), nn.Dropout(0.5), nn.Linear(3, outputs))


def test_an_mlp_has_the_layers_it_was_asked_for():
    network = build("mlp", 5, 2, hidden=(7, 3), activation="relu")
    kinds = [type(part) for part in network]
    assert kinds == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert [tuple(p.shape) for p in network.parameters()] == [(7, 5), (7,), (3, 7), (3,), (2, 3), (2,)]
    assert len(build("linear", 5, 2, hidden=(7, 3))) == 1
    assert all(part.bias is None for part in build("mlp", 5, 2, bias=False) if isinstance(part, nn.Linear))


@pytest.mark.parametrize("init", ["normc", "xavier", "orthogonal", "zeros"])
def test_initialisations_follow_the_seed_alone(init):
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


def test_normc_and_orthogonal_have_the_norms_they_promise():
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
def test_plain_stacks_are_recognised(module):
    assert isinstance(shape(module), Stack)


def shared():
    layer = nn.Linear(3, 3)
    return nn.Sequential(layer, nn.Tanh(), layer)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(3, 2), nn.GELU()),
        nn.Sequential(nn.Linear(3, 2), nn.ELU(0.5)),
        nn.Sequential(nn.Tanh(), nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Tanh()),
        nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)),
        shared(),
    ],
)
def test_everything_else_takes_the_general_path(module):
    assert isinstance(shape(module), TorchNetwork)


def test_vectors_go_there_and_back():
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
    ],
)
def test_modules_that_cannot_be_trained_are_refused(module, said):
    with pytest.raises(InputError, match=said):
        shape(module)


def test_a_factory_makes_the_network():
    network = build(f"{__name__}:factory", 4, 2)
    assert isinstance(network, nn.Sequential)
    assert not network.training
    for policy, said in [("no_such:x", "no_such"), (f"{__name__}:missing", "missing"), ("math:gcd", "int")]:
        with pytest.raises(InputError, match=said):
            build(policy, 4, 2)


def test_a_factory_draws_from_the_seed_alone():
    rolled = torch.get_rng_state()
    first, again, other = (
        build("tests.own_code:Features", 3, 2, seed=seed).state_dict() for seed in (4, 4, 5)
    )
    assert torch.equal(torch.get_rng_state(), rolled)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("how", ["subclass", "hook", "patched", "weight norm"])
def test_a_stack_that_computes_something_else_is_not_run_as_one(how):
    layer = nn.Linear(3, 2)
    if how == "subclass":
        module = Negated(layer)
    elif how == "weight norm":
        module = nn.Sequential(nn.utils.parametrizations.weight_norm(layer))
    else:
        module = nn.Sequential(layer)
        if how == "hook":
            layer.register_forward_hook(lambda module, given, output: -output)
        else:
            layer.forward = lambda x: -nn.functional.linear(x, layer.weight, layer.bias)
    assert isinstance(shape(module), TorchNetwork)


def test_what_is_not_trained_can_be_taken_and_given_back():
    first, other = Features(3, 2), Features(3, 2)
    assert set(fixed(first)) == {"features.weight", "features.bias", "shift"}
    assert fixed(nn.Sequential(nn.Linear(3, 2))) == {}
    set_fixed(other, fixed(first))
    from_vector(other, to_vector(first))
    seen = torch.rand(5, 3)
    assert torch.equal(other(seen), first(seen))
    with pytest.raises(InputError, match=r"frozen parameters and buffers \(none\) are not those"):
        set_fixed(nn.Linear(3, 2), fixed(first))
