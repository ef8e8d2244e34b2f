"""The quadratic policy: its products, their order, and the inputs it rejects."""

import itertools

import numpy as np
import pytest
import torch

from escalade import InputError
from escalade.policies.modules import Products
from escalade.policies.networks import build
from escalade.policies.population.layers import ProductsOperation, product_count


def products_by_hand(vector):
    one_and = [1.0, *vector]
    return [one_and[i] * one_and[j] for j in range(1, len(one_and)) for i in range(j + 1)]


def test_products_hold_every_pair_once_with_lower_degrees_first():
    seen = torch.tensor([[2.0, 3.0, 5.0], [-1.0, 0.5, 7.0]])
    found = Products(3)(seen)
    assert found[0].tolist() == [2, 4, 3, 6, 9, 5, 10, 15, 25]
    assert found[1].tolist() == products_by_hand(seen[1].tolist())
    assert torch.equal(Products(2)(seen[:, :2]), found[:, : product_count(2)])


@pytest.mark.parametrize("features", [1, 2, 9])
def test_batched_layer_computes_bit_identical_products(features):
    seen = np.random.default_rng(features).normal(size=(4, features)).astype(np.float32)
    operation = ProductsOperation(features, 6, ())
    expected = Products(features)(torch.from_numpy(seen)).numpy()
    np.testing.assert_array_equal(operation(seen), expected)
    np.testing.assert_array_equal(operation(seen[2:]), expected[2:])  # fewer, in other rows
    np.testing.assert_array_equal(operation.each(0, seen), expected)


def test_quadratic_policy_can_represent_any_quadratic_form():
    network = build("quadratic", 3, 1, bias=True)
    chance = np.random.default_rng(4)
    matrix, vector = chance.normal(size=(3, 3)), chance.normal(size=3)
    weights = [
        vector[j] if i < 0 else matrix[i, j] + (matrix[j, i] if i < j else 0.0)
        for j in range(3)
        for i in range(-1, j + 1)
    ]
    with torch.no_grad():
        network[1].weight[:] = torch.tensor([weights])
        network[1].bias[:] = 0.7
    for corner in itertools.product([-1.0, 0.5], repeat=3):
        x = np.array(corner)
        with torch.no_grad():
            output = network(torch.tensor([corner], dtype=torch.float32)).item()
        assert output == pytest.approx(x @ matrix @ x + vector @ x + 0.7, abs=1e-5)


def test_images_and_large_observations_are_rejected():
    with pytest.raises(InputError, match="quadratic is for vectors, but the observations are images"):
        build("quadratic", (3, 8, 8), 2)
    with pytest.raises(InputError, match=r"have 149,424,912 parameters for observations of 7,056 numbers"):
        build("quadratic", (84, 84), 6)
