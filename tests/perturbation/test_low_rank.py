"""Low-rank noise: members, sums, addresses."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap

from escalade.errors import InputError
from escalade.perturbation import GaussianPopulation, LowRank, NoiseTable, table_size, write_all
from escalade.perturbation.low_rank import noise_length
from escalade.perturbation.registry import make_source, rank_of
from escalade.policies.population.layout import Layout

SHAPES = ((20, 30), (30,), (8, 4, 3, 3), (1, 50), (5, 2), (), (0, 4), (12, 12))
SIZE = 20 * 30 + 30 + 8 * 36 + 50 + 10 + 1 + 0 + 144
COUNT = 9


def draws(rank, count=COUNT, generation=3):
    return make_source(f"low-rank:{rank}", 5, SHAPES).draw(7, generation, count, SIZE)


def written(draws, count=COUNT, scale=1.0, dtype=np.float32):
    noise = np.zeros((count, SIZE), dtype)
    for number, row in enumerate(noise):
        draws.write(number, scale, row)
    return noise


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_matrices_have_the_rank_and_other_parameters_have_full_noise(rank):
    noise = written(draws(rank))
    for row in noise:
        assert np.linalg.matrix_rank(row[:600].reshape(20, 30), tol=1e-4) == rank
        assert np.linalg.matrix_rank(row[630:918].reshape(8, 36), tol=1e-4) == rank
        assert np.linalg.matrix_rank(row[-144:].reshape(12, 12), tol=1e-4) == rank
    parts = make_source(f"low-rank:{rank}", 5, SHAPES).parts
    assert [part.rank for part in parts] == [rank, 0, rank, 0, 1 if rank == 1 else 0, 0, 0, rank]
    assert sum(part.size for part in parts) == SIZE


@pytest.mark.parametrize("rank", [1, 4])
def test_numbers_have_mean_0_and_variance_1_and_are_uncorrelated(rank):
    shapes = ((40, 50),)
    source = make_source(f"low-rank:{rank}", 5, shapes)
    made = source.draw(1, 0, 3000, 2000)
    noise = np.zeros((3000, 2000), np.float32)
    for number, row in enumerate(noise):
        made.write(number, 1.0, row)
    assert abs(noise.mean()) < 0.005
    assert abs(noise.var(axis=0).mean() - 1.0) < 0.01
    together = np.corrcoef(noise[:, [0, 1, 50, 51, 1999]].T) - np.eye(5)
    assert np.abs(together).max() < 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 3])
def test_weighted_sums_equal_those_of_the_dense_noise(rank, dtype):
    made, chance = draws(rank), np.random.default_rng(0)
    noise, weights = written(made).astype(np.float64), chance.normal(size=COUNT)
    weights[4] = 0.0
    total = made.weighted_sum(weights, dtype)
    assert total.dtype == dtype
    np.testing.assert_allclose(total, weights @ noise, atol=2e-5)


def test_sum_over_blocks_equals_the_whole_sum(monkeypatch):
    made, weights = draws(2), np.arange(COUNT) - 3.0
    whole = made.weighted_sum(weights)
    monkeypatch.setattr("escalade.perturbation.low_rank.AT_ONCE", 2 * made.source.length)
    np.testing.assert_allclose(made.weighted_sum(weights), whole, atol=1e-5)


def test_perturbation_depends_only_on_its_address():
    np.testing.assert_array_equal(written(draws(2)), written(draws(2, count=40)))
    assert not np.array_equal(written(draws(2)), written(draws(2, generation=4)))


def test_pairs_average_to_the_center_and_pickled_populations_are_small():
    source = make_source("low-rank:2", 5, ((300, 400), (400,)))
    center = np.random.default_rng(1).normal(size=120_400).astype(np.float32)
    population = GaussianPopulation(center, 0.1, source, 7, 2, 6)
    members = write_all(population)
    np.testing.assert_allclose((members[0::2] + members[1::2]) / 2, np.stack([center] * 3), atol=1e-6)
    sent = pickle.dumps(population)
    assert len(sent) < center.nbytes + 2000
    np.testing.assert_array_equal(write_all(pickle.loads(sent)), members)


def test_table_size_fits_the_factors():
    shapes = ((2000, 1000), (1000,))
    source = make_source("low-rank:1", 0, shapes)
    assert source.length == noise_length(shapes, 1) == 3000 + 1000
    assert isinstance(source.noise, NoiseTable)
    assert source.noise.size == table_size(4000)


@pytest.mark.parametrize(
    "text", ["", "low", "full:1", "low-rank:", "low-rank:0", "low-rank:-1", "low-rank:1.5"]
)
def test_unknown_perturbation_is_rejected(text):
    with pytest.raises(InputError, match="unknown `perturbation`"):
        rank_of(text)


def test_wrong_ranks_and_dimensions_are_rejected():
    table = NoiseTable(0, table_size(10))
    with pytest.raises(InputError, match="rank 0 must be at least 1"):
        LowRank(table, 0, SHAPES)
    with pytest.raises(InputError, match=f"have {SIZE} parameters, but x0 has 4"):
        LowRank(table, 1, SHAPES).draw(0, 0, 2, 4)


def quadratic():
    """Return a quadratic of a matrix, a center far from its minimum, the gradient there, and shapes."""
    chance = np.random.default_rng(3)
    target, weights = chance.normal(size=(10, 12)), chance.uniform(0.2, 2.0, size=(10, 12))

    def value(members):
        return -(weights * (members.reshape(-1, 10, 12) - target) ** 2).sum(axis=(1, 2))

    return value, np.zeros(120), 2 * (weights * target).ravel(), ((10, 12),)


def perceptron():
    """Return the same for the error of a small network on a few points."""
    torch.manual_seed(0)
    module, inputs = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 5)), torch.randn(30, 6)
    targets, layout = torch.randn(30, 5), Layout(module)

    def value(members):
        def one(parameters):
            return -nn.functional.mse_loss(functional_call(module, parameters, (inputs,)), targets)

        return vmap(one)(layout.stack(members.astype(np.float32))).detach().numpy()

    nn.functional.mse_loss(module(inputs), targets).backward()
    gradient = -torch.cat([part.grad.reshape(-1) for part in module.parameters()]).numpy()
    return value, layout.to_vector(module), gradient, layout.held_shapes


@pytest.mark.parametrize("problem", [quadratic, perceptron])
def test_gradient_estimate_improves_with_the_rank(problem):
    value, center, gradient, shapes = problem()
    pairs, sigma = 60, 0.01

    def cosine(text):
        made = make_source(text, 5, shapes)
        found = []
        for generation in range(40):
            population = GaussianPopulation(center, sigma, made, 1, generation, 2 * pairs)
            values = value(write_all(population))
            estimate = population.draws.weighted_sum(values[0::2] - values[1::2])
            norms = np.linalg.norm(estimate) * np.linalg.norm(gradient)
            found.append(float(estimate @ gradient / norms))
        return np.mean(found)

    full, *lower = (cosine(text) for text in ("full", "low-rank:4", "low-rank:2", "low-rank:1"))
    assert full > 0.5
    assert lower[0] > lower[1] > lower[2] > 0.8 * full
    assert lower[0] > 0.95 * full
