"""Low-rank members share the center's products: outputs equal dense members', bit-identical in any batch."""

import numpy as np
import pytest
import torch
from torch import nn

from escalade.perturbation import CenterPopulation, DensePopulation, GaussianPopulation, write_all
from escalade.perturbation.registry import make_source
from escalade.policies.networks import batched_network, build, layout_of, to_vector
from escalade.policies.population.virtual_batch import REFERENCE_FRAMES

ROWS = 10


class OwnStatefulModule(nn.Module):
    """A user-defined stateful module."""

    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.out = nn.GRUCell(9, 12), nn.LayerNorm(12), nn.Linear(12, 3)

    def initial_state(self, seed):
        return torch.zeros(12) + self.norm.bias

    def forward(self, x, state):
        state = self.inner(x, state)
        return self.out(self.norm(state)), state


class Sequence(nn.Module):
    """A module that vmap alone cannot batch."""

    def __init__(self):
        super().__init__()
        self.part = nn.LSTM(3, 8, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.part(x.reshape(len(x), 3, 3))[0][:, -1])


class Tokens(nn.Module):
    """Passes its own matrices as inputs of torch functions, and has a norm over two axes."""

    def __init__(self):
        super().__init__()
        self.tokens, self.image = nn.Parameter(torch.randn(5, 12)), nn.Parameter(torch.randn(4, 14))
        self.project, self.convolve = nn.Linear(12, 12), nn.Conv1d(4, 5, 3)
        self.norm_tokens, self.norm = nn.LayerNorm(12), nn.LayerNorm((5, 12))
        with torch.no_grad():
            self.norm.weight.normal_(), self.norm.bias.normal_()
        self.ask, self.out = nn.Linear(17, 12), nn.Linear(12, 3)

    def forward(self, x):
        keys = self.norm(self.project(self.tokens) + self.project(self.norm_tokens(self.tokens)))
        seen = nn.functional.scaled_dot_product_attention(
            self.ask(x)[:, None], keys + self.convolve(self.image), self.tokens
        )
        return self.out(seen[:, 0])


class AttentionOverParameters(nn.Module):
    """Attention whose queries, keys and values include parameters."""

    def __init__(self):
        super().__init__()
        self.key, self.value = nn.Parameter(torch.randn(5, 12)), nn.Parameter(torch.randn(5, 12))
        self.ask, self.out = nn.Linear(17, 12), nn.Linear(12, 3)

    def forward(self, x):
        asked = self.ask(x)[:, None]
        return self.out(nn.functional.scaled_dot_product_attention(asked, self.key, self.value)[:, 0])


class Branches(nn.Module):
    """Branches on a value of its input."""

    def __init__(self):
        super().__init__()
        self.first, self.out = nn.Linear(17, 200), nn.Linear(200, 3)

    def forward(self, x):
        seen = self.out(torch.tanh(self.first(x)))
        return seen if x.sum() > 0 else -seen


OWN = {
    "own": lambda: nn.Sequential(nn.Linear(17, 40), nn.LayerNorm(40), nn.GELU(), nn.Linear(40, 3)),
    "own with state": OwnStatefulModule,
    "own of a sequence": Sequence,
    "own of tokens": Tokens,
    "own of attention": AttentionOverParameters,
    "own of branches": Branches,
    "own of few outputs": lambda: nn.Sequential(
        nn.Linear(17, 8), nn.GELU(), nn.Linear(8, 5), nn.GELU(), nn.Linear(5, 3)
    ),
}
NETWORKS = {
    "linear": ((17,), {}),
    "mlp": ((17,), {"hidden": [64, 300]}),
    "one": ((1,), {"hidden": [5, 1]}),
    "quadratic": ((6,), {}),
    "gru": ((9,), {"hidden": [32, 24]}),
    "lstm": ((9,), {"hidden": [24]}),
    "lstm without bias": ((9,), {"hidden": [24], "bias": False}),
    "nature": ((4, 84, 84), {}),
    "openai-atari": ((4, 42, 42), {}),  # its reference batch takes most of the time
    "conv-lstm": ((1, 42, 42), {}),
    "small-cnn": ((3, 84, 84), {}),
    "own": ((17,), {}),
    "own with state": ((9,), {}),
    "own of a sequence": ((9,), {}),
    "own of tokens": ((17,), {}),
    "own of few outputs": ((17,), {}),
    "own of attention": ((17,), {}),
    "own of branches": ((17,), {}),
}
SHARING = ["mlp", "linear", "gru", "lstm", "nature", "openai-atari", "conv-lstm"]


def setting(name, rank, rows=ROWS):
    """Return the stack, noise source, population, and rows of observations."""
    shape, options = NETWORKS[name]
    policy = {"one": "mlp"}.get(name, name.split()[0])
    torch.manual_seed(1)
    module = OWN[name]() if name in OWN else build(policy, shape, 3, seed=1, **options)
    chance = np.random.default_rng(2)
    if policy == "openai-atari":
        frames = chance.integers(0, 256, (REFERENCE_FRAMES, *shape), dtype=np.uint8)
        module.set_reference(torch.from_numpy(frames), 255.0)
    source = make_source(f"low-rank:{rank}", 5, layout_of(module).held_shapes)
    population = GaussianPopulation(to_vector(module), 0.1, source, 7, 3, rows)
    seen = chance.normal(size=(3, rows, *shape)).astype(np.float32)
    return batched_network(module, shape), source, population, seen


def filled(stack, source, population, members, room=None):
    forward = stack.forward(room or len(members), source)
    forward.begin(population.center)
    for row, member in enumerate(members):
        forward.load(row, population, member, member)
    return forward


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # from torch, for cells of dense members
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_equal_those_of_dense_members(name, rank):
    stack, source, population, seen = setting(name, rank)
    forward, slow = filled(stack, source, population, range(ROWS)), stack.forward(ROWS)
    written = DensePopulation(write_all(population))
    for member in range(ROWS):
        slow.load(member, written, member, member)
    for observations in seen:
        expected = slow(observations)
        np.testing.assert_allclose(
            forward(observations), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max()
        )
    if name in SHARING and rank == 1:
        blocks = [block for operation in forward._operations for block in operation.parameters]
        assert sum(block[0].size for block in blocks) < stack.dimension / 2


@pytest.mark.parametrize("name", ["mlp", "gru", "lstm", "nature", "openai-atari", "conv-lstm", *OWN])
def test_member_outputs_are_bit_identical_in_any_batch_and_row(name):
    stack, source, population, seen = setting(name, 1)
    together = filled(stack, source, population, range(ROWS))
    results = [together(observations).copy() for observations in seen]
    for members, room in (([7], 1), ([3, 8, 1], 50), ([*range(9, -1, -1)], 33)):
        forward = filled(stack, source, population, members, room)
        for observations, expected in zip(seen, results, strict=True):
            np.testing.assert_array_equal(forward(observations[members]), expected[members])


def test_outputs_do_not_depend_on_rows_beyond_a_block():
    stack, source, population, seen = setting("mlp", 2, rows=150)
    expected = filled(stack, source, population, range(150))(seen[0]).copy()
    for first in (0, 1, 37, 149):
        found = filled(stack, source, population, range(first, 150))(seen[0][first:])
        np.testing.assert_array_equal(found, expected[first:])


@pytest.mark.parametrize("name", ["mlp", "gru", "conv-lstm", *OWN])
def test_remaining_members_move_to_the_front_with_their_factors_and_states(name):
    stack, source, population, seen = setting(name, 1)
    forward, whole = (filled(stack, source, population, range(ROWS)) for _ in range(2))
    kept = np.array([1, 4, 5, 9])
    np.testing.assert_array_equal(forward(seen[0]), whole(seen[0]))
    forward.keep(kept)
    np.testing.assert_array_equal(forward(seen[1][kept]), whole(seen[1])[kept])


def test_center_is_a_member_without_noise():
    stack, source, population, seen = setting("mlp", 1)
    forward, slow = stack.forward(2, source), stack.forward(1)
    forward.begin(population.center)
    forward.load(0, CenterPopulation(population.center), 0)
    forward.load(1, population, 5)
    slow.load(0, CenterPopulation(population.center), 0)
    np.testing.assert_allclose(forward(seen[0][:2])[0], slow(seen[0][:1])[0], rtol=1e-5, atol=1e-6)


def test_next_generation_uses_the_new_center():
    stack, source, population, seen = setting("conv-lstm", 1, rows=2)
    forward = filled(stack, source, population, range(2))
    first = forward(seen[0]).copy()
    moved = GaussianPopulation(population.center + 0.1, 0.1, source, 7, 4, 2)
    forward.begin(moved.center)
    for row in range(2):
        forward.load(row, moved, row)
    np.testing.assert_array_equal(forward(seen[0]), filled(stack, source, moved, range(2))(seen[0]))
    assert not np.array_equal(first, forward(seen[0]))
