"""The named networks: close to torch, bit-identical in any batch and row, with states that follow members."""

import numpy as np
import pytest
import torch
from tests.members import load
from torch import nn

from escalade import InputError
from escalade.config.options import Config
from escalade.policies.architectures.registry import ARCHITECTURES
from escalade.policies.modules import Chain, VirtualBatchNorm, is_stateful, map_state
from escalade.policies.networks import batched_network, build, from_vector, to_vector
from escalade.policies.population.stack import Stack
from escalade.policies.population.torch_network import TorchNetwork

SHAPES = {
    "linear": (5,),
    "mlp": (5,),
    "quadratic": (5,),
    "gru": (5,),
    "lstm": (5,),
    "nature": (2, 37, 41),
    "openai-atari": (1, 20, 22),
    "conv-lstm": (1, 13, 9),
    "small-cnn": (3, 24, 21),
}
ROWS, STEPS = 9, 3


def build_network(name, init="xavier", activation="tanh", bias=True):
    options = {"hidden": (7, 6), "activation": activation, "bias": bias, "init": init}
    network = build(name, SHAPES[name], 3, seed=2, **options)
    if name == "openai-atari":
        frames = torch.randint(256, network.reference.shape, generator=torch.Generator().manual_seed(3))
        network.set_reference(frames.to(torch.uint8), 255.0)
    return network


def population(network, rows=ROWS):
    """Return the members' parameters and their observations at each step."""
    chance, center = np.random.default_rng(2), to_vector(network)
    members = center + 0.1 * chance.normal(size=(rows, len(center))).astype(np.float32)
    return members


def random_observations(name, rows=ROWS):
    return np.random.default_rng(5).random((STEPS, rows, *SHAPES[name]), dtype=np.float32)


def played(forward, members, seen, seeds):
    """Return the outputs of a few steps, shape (steps, members, outputs)."""
    for row, member in enumerate(members):
        load(forward, row, member, int(seeds[row]))
    return np.stack([forward(step).copy() for step in seen])


def module_outputs(network, member, seen, seed):
    from_vector(network, member)
    state = map_state(lambda part: part[None], network.initial_state(seed)) if is_stateful(network) else None
    outputs = []
    with torch.no_grad():
        for step in torch.from_numpy(seen):
            given = step[None]
            output, state = network(given, state) if is_stateful(network) else (network(given), None)
            outputs.append(output[0].numpy())
    return np.stack(outputs)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_member_outputs_match_the_module_and_do_not_depend_on_other_members(name):
    network = build_network(name)
    stack = batched_network(network, SHAPES[name])
    assert isinstance(stack, Stack)
    assert stack.dimension == len(to_vector(network))
    members, seen, seeds = population(network), random_observations(name), np.arange(ROWS) + 40
    forward = stack.forward(ROWS)
    together = played(forward, members, seen, seeds)
    assert np.unique(together.round(5)).size > ROWS
    for row in (0, 4):
        expected = module_outputs(network, members[row], seen[:, row], 40 + row)
        np.testing.assert_allclose(together[:, row], expected, rtol=1e-3, atol=1e-4)
    rows = np.array([7, 2, 5])
    few = played(forward, members[rows], seen[:, rows], seeds[rows])  # the same rows, used a second time
    np.testing.assert_array_equal(few, together[:, rows])
    alone = played(stack.forward(1), members[4:5], seen[:, 4:5], seeds[4:5])
    np.testing.assert_array_equal(alone[:, 0], together[:, 4])


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_episode_continues_in_a_different_row_and_leaves_no_state_behind(name):
    network = build_network(name)
    members, seen = population(network), random_observations(name)
    stack = batched_network(network, SHAPES[name])
    together = played(stack.forward(ROWS), members, seen, np.arange(ROWS))
    forward = stack.forward(ROWS)
    played(forward, members, seen[:2], np.arange(ROWS))
    kept = np.array([2, 3, 8])
    forward.keep(kept)
    load(forward, 1, members[6], 6)  # row 1, which held member 3, begins another episode
    third = forward(np.stack([seen[2, 2], seen[0, 6], seen[2, 8]]))
    np.testing.assert_array_equal(third[[0, 2]], together[2, [2, 8]])
    np.testing.assert_array_equal(third[1], together[0, 6])


@pytest.mark.parametrize("name", ["gru", "lstm", "conv-lstm", "openai-atari"])
def test_stateful_policy_depends_on_past_observations(name):
    network = build_network(name)
    forward = batched_network(network, SHAPES[name]).forward(2)
    member, seen = population(network)[0], random_observations(name)[:, :1]
    twice = played(forward, [member], np.stack([seen[0], seen[1], seen[0]]), [1])
    same = np.array_equal(twice[0], twice[2])
    assert same == (name == "openai-atari")  # its state holds only the reference statistics


@pytest.mark.parametrize("hidden", [(4,), (5, 4)])
@pytest.mark.parametrize("name", ["mlp", "gru", "lstm"])
def test_images_are_flattened_for_vector_networks(name, hidden):
    network = build(name, (3, 8, 8), 2, hidden=hidden, init="xavier", seed=2)
    stack = batched_network(network, (3, 8, 8))
    assert isinstance(stack, Stack)
    members = population(network, 4)
    seen = np.random.default_rng(5).random((STEPS, 4, 3, 8, 8), dtype=np.float32)
    outputs = played(stack.forward(4), members, seen, range(4))
    assert np.unique(outputs.round(5)).size > 4
    for row in range(4):
        expected = module_outputs(network, members[row], seen[:, row].reshape(STEPS, -1), row)
        np.testing.assert_allclose(outputs[:, row], expected, rtol=1e-3, atol=1e-4)


def test_parameter_counts_match_the_papers():
    counts = {
        ("nature", (4, 84, 84), 4): 1_686_180,
        ("conv-lstm", (1, 42, 42), 6): 588_710,
        ("small-cnn", (3, 84, 84), 3): 92_690,  # 1,362 in the convolutions, as in its code
    }
    for (name, shape, outputs), expected in counts.items():
        assert len(to_vector(build(name, shape, outputs))) == expected


def test_user_defined_sequential_of_convolutions_runs_as_a_stack():
    torch.manual_seed(1)
    body = [nn.Conv2d(2, 3, (2, 3), stride=(2, 1), padding=(1, 0)), nn.SELU(), nn.MaxPool2d((2, 1), 2)]
    network = nn.Sequential(*body, nn.Flatten(), nn.Linear(3 * 2 * 2, 2))
    stack = batched_network(network, (2, 7, 6))
    assert isinstance(stack, Stack)
    members, seen = population(network, 4), np.random.default_rng(1).random((1, 4, 2, 7, 6), np.float32)
    outputs = played(stack.forward(4), members, seen, range(4))
    for row in range(4):
        expected = module_outputs(network, members[row], seen[:, row], 0)
        np.testing.assert_allclose(outputs[:, row], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 2, 3, groups=2),
        nn.Conv2d(2, 2, 3, dilation=2),
        nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"),
        nn.Conv2d(2, 2, 3, padding="same"),
        nn.Sequential(nn.Conv2d(2, 2, 3), nn.MaxPool2d(2, padding=1)),
        nn.Sequential(nn.Conv2d(2, 2, 3), nn.MaxPool2d(2, ceil_mode=True)),
        nn.Sequential(nn.Conv2d(2, 2, 3), nn.Flatten(2)),
    ],
    ids=str,
)
def test_unsupported_convolutions_run_through_torch(layer):
    layers = list(layer) if isinstance(layer, nn.Sequential) else [layer]
    assert isinstance(batched_network(nn.Sequential(*layers, nn.Flatten()), (2, 8, 8)), TorchNetwork)


def test_cell_outside_a_chain_has_no_state():
    network = nn.Sequential(nn.GRUCell(3, 2))
    assert isinstance(batched_network(network, (3,)), TorchNetwork)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": "natur"}, "unknown `policy` 'natur'.*did you mean nature"),
        (
            {"policy": "qqq"},
            "unknown `policy` 'qqq': it must be one of linear, mlp, .*small-cnn, or package.module:factory",
        ),
        ({"policy": "nature", "hidden": [8]}, "`hidden` has no effect with `policy` nature; remove it"),
        (
            {"policy": "nets:small", "hidden": [8]},
            "`hidden` has no effect with `policy` nets:small, which takes only inputs and outputs; remove it",
        ),
    ],
)
def test_invalid_config_is_rejected(options, said):
    with pytest.raises(InputError, match=said):
        Config(env="CartPole-v1", **options)


@pytest.mark.parametrize(
    ("name", "shape", "said"),
    [
        ("nature", (4,), "nature is for images, but the observations are vectors; use mlp or gru"),
        ("nature", (4, 30, 90), "images of 4 x 30 x 90 are too small"),
        ("conv-lstm", (7,), "conv-lstm is for images"),
    ],
)
def test_observation_shapes_a_network_cannot_process_are_rejected(name, shape, said):
    with pytest.raises(InputError, match=said):
        build(name, shape, 2)


@pytest.mark.parametrize(("hidden", "sizes"), [((), (4, 64)), ((8,), (4, 8)), ((8, 16), (8, 16))])
def test_cell_size_is_the_last_hidden_size_or_64(hidden, sizes):
    (cell,) = [
        layer for layer in build("gru", 4, 2, hidden=hidden).modules() if isinstance(layer, nn.GRUCell)
    ]
    assert (cell.input_size, cell.hidden_size) == sizes


def test_stack_with_mismatched_layers_is_rejected():
    with pytest.raises(InputError, match=r"Linear\(in_features=5.* cannot take 4 numbers"):
        batched_network(nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 2)))
    with pytest.raises(InputError, match=r"Conv2d\(2, 2.* cannot take images of 3 x 8 x 8"):
        batched_network(nn.Sequential(nn.Conv2d(2, 2, 3)), (3, 8, 8))


def test_virtual_batch_normalization_comes_first_and_needs_a_reference():
    with pytest.raises(InputError, match="needs `reference_shape`"):
        Chain(nn.Linear(3, 4), VirtualBatchNorm(4))
    with pytest.raises(InputError, match="must come before"):
        Chain(nn.GRUCell(3, 4), VirtualBatchNorm(4), reference_shape=(3,))


def test_chain_rejects_a_cell_whose_state_would_be_lost():
    with pytest.raises(InputError, match=r"does not carry the state of nn\.RNNCell; use nn\.GRUCell"):
        Chain(nn.RNNCell(3, 4), nn.Linear(4, 2))
