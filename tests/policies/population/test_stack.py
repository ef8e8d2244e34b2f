"""The batched forward pass of linear stacks: bit-identical in any batch and row, close to torch's outputs."""

import numpy as np
import pytest
import torch
from tests.members import fill, load

from escalade.policies.activations import ACTIVATIONS
from escalade.policies.networks import batched_network, build, from_vector, to_vector

ROWS = 23
SHAPES = [(1, 1, ()), (3, 2, (5,)), (17, 6, (64, 64)), (4, 1, (1, 33)), (348, 17, (32,))]


def network(inputs, outputs, hidden, activation="tanh", bias=True):
    module = build(
        "mlp", inputs, outputs, hidden=hidden, activation=activation, bias=bias, init="xavier", seed=1
    )
    return module, batched_network(module)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_outputs_match_torch(activation, bias):
    module, stack = network(17, 6, (32, 16), activation, bias)
    chance = np.random.default_rng(2)
    seen = (3 * chance.normal(size=(5, 17))).astype(np.float32)
    forward = stack.forward(5)
    for row in range(5):
        vector = chance.normal(size=stack.dimension).astype(np.float32)
        load(forward, row, vector)
        from_vector(module, vector)
        np.testing.assert_array_equal(to_vector(module), vector)
        with torch.no_grad():
            expected = module(torch.from_numpy(seen[row : row + 1])).numpy()[0]
        np.testing.assert_allclose(forward(seen)[row], expected, rtol=2e-4, atol=2e-5)


def test_extreme_inputs_neither_warn_nor_leak():
    for activation in ACTIVATIONS:
        _, stack = network(3, 2, (4,), activation)
        forward = stack.forward(3)
        fill(forward, np.ones((3, stack.dimension)))
        seen = np.array([[1, 1, 1], [1e30, -1e30, 1e30], [-1e20, 0, 0]], np.float32)
        alone = forward(seen[:1]).copy()
        np.testing.assert_array_equal(forward(seen)[0], alone[0])
