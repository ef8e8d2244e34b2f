"""Guided ES compared with its paper, and its requirements on a surrogate gradient."""

from functools import partial

import numpy as np
import pytest
import torch

from escalade import InputError
from escalade.perturbation import NoiseTable
from escalade.strategies import GuidedES, OpenAIES
from escalade.wings.own_loops.guided_noise import GuidedNoise, orthonormal

TABLE = NoiseTable(2, 2**16)


def noise(generation, pairs, dimension, seed=5):
    z, draws = np.empty((pairs, dimension)), TABLE.draw(seed, generation, pairs, dimension)
    for number, row in enumerate(z):
        draws.write(number, 1.0, row)
    return z


@pytest.mark.parametrize("fitness", ["plain", "offset", "tied"])
@pytest.mark.parametrize("dimension", [2, 17, 300])
@pytest.mark.parametrize("guides", [1, 3])
def test_the_step_matches_the_paper(dimension, guides, fitness):
    """Uses the explicit root of the covariance of equation 3, and the mean of algorithm 1."""
    pairs, sigma, lr, alpha = 6, 0.2, 0.1, 0.3
    rng, target = np.random.default_rng(1), np.linspace(-1, 1, dimension)
    surrogates = rng.normal(size=(5, dimension))
    given = iter(surrogates)
    es = GuidedES(
        target[::-1], 2 * pairs, sigma, surrogate=lambda _: next(given), guides=guides, alpha=alpha,
        optimizer="sgd", momentum=0.0, lr=lr, shaping="raw", seed=5, perturbation=TABLE,
    )  # fmt: skip
    center = target[::-1].copy()
    for generation in range(5):
        k = min(guides, generation + 1, dimension)
        u, _ = np.linalg.qr(surrogates[generation::-1][:k].T)
        covariance = dimension * (alpha / dimension * np.eye(dimension) + (1 - alpha) / k * u @ u.T)
        values, axes = np.linalg.eigh(covariance)
        steps = noise(generation, pairs, dimension) @ (axes * np.sqrt(values)) @ axes.T
        members = es.ask().numpy()
        np.testing.assert_allclose(members[0::2], center + sigma * steps, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(members[1::2], center - sigma * steps, rtol=1e-7, atol=1e-9)
        values = -((members - target) ** 2).sum(axis=1)
        values = {"plain": values, "offset": values + 1e6, "tied": np.round(3 * values / values.std())}[
            fitness
        ]
        es.tell(values)
        center = center + lr * (values[0::2] - values[1::2]) @ steps / (2 * pairs * sigma)
        np.testing.assert_allclose(es.center.numpy(), center, rtol=1e-5, atol=1e-7)


def test_noise_has_the_covariance_of_the_paper_and_the_norm_of_plain_noise():
    basis = orthonormal(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 2.0, 1.0, 0.0]]))
    draws = GuidedNoise(NoiseTable(1, 2**21), basis, 0.4).draw(0, 0, 20_000, 4)
    z = np.empty((20_000, 4))
    for number, row in enumerate(z):
        draws.write(number, 1.0, row)
    expected = 0.4 * np.eye(4) + 0.6 * 4 / 2 * basis.T @ basis
    np.testing.assert_allclose(np.cov(z.T), expected, atol=0.05)
    assert (z**2).sum(axis=1).mean() == pytest.approx(4, rel=0.02)
    weights = np.zeros(20_000)
    weights[:50] = np.random.default_rng(0).normal(size=50)
    np.testing.assert_allclose(draws.weighted_sum(weights, np.float64), weights @ z, rtol=1e-6)


def test_the_basis_spans_the_independent_rows():
    rows = np.array([[0.0, 0, 0], [1, 2, 3], [2, 4, 6], [1e200, 0, 0], [1e-200, 1e-200, 0]])
    basis = orthonormal(rows)
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(basis[0], np.array([1, 1, 0]) / np.sqrt(2), atol=1e-12)
    assert orthonormal(np.zeros((2, 3))).shape == (0, 3)


def test_with_alpha_one_or_a_zero_gradient_it_equals_openai_es():
    options = {"population": 12, "sigma": 0.1, "lr": 0.03, "seed": 5, "perturbation": TABLE}
    found = []
    for es in (
        OpenAIES(np.zeros(4), **options),
        GuidedES(np.zeros(4), surrogate=lambda center: center - 1, alpha=1, **options),
        GuidedES(np.zeros(4), surrogate=torch.zeros_like, **options),
    ):
        for _ in range(10):
            es.tell(-((es.ask().numpy() - 1) ** 2).sum(axis=1))
        found.append(es.center.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-12)


def keeps_and_mutates(center, kept):
    """Return a noisy autograd gradient of a quadratic; overwrites its argument and earlier results."""
    for given in kept:
        given.fill_(torch.nan)
    center.requires_grad_()
    slope = torch.autograd.grad(((center - 1) ** 2).sum(), center)[0] + 0.1 * torch.randn(len(center))
    kept.extend([center.detach(), slope])
    return slope


def test_a_restored_state_continues_identically_and_owns_its_arrays():
    def made():
        surrogate = partial(keeps_and_mutates, kept=[])
        return GuidedES(np.zeros(5), 12, 0.1, surrogate=surrogate, guides=3, seed=1, perturbation=TABLE)

    def steps(es, count):
        for _ in range(count):
            es.tell(-((es.ask().numpy() - 1) ** 2).sum(axis=1))

    first, second = made(), made()
    steps(first, 5)
    first.ask()  # in the middle of a generation
    second.load_state_dict(first.state_dict())
    for es in (first, second):
        steps(es, 5)
    assert first.center.isfinite().all()
    np.testing.assert_array_equal(first.center.numpy(), second.center.numpy())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"surrogate": 3}, "surrogate must be a function of the center, not 3"),
        ({"guides": 0}, "guides 0 must be at least 1"),
        ({"alpha": 0}, "alpha 0 must be above 0 and at most 1"),
        ({"alpha": 1.5}, "alpha 1.5 must be above 0"),
    ],
)
def test_impossible_arguments_are_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        GuidedES(np.zeros(3), **({"surrogate": torch.ones_like} | options))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones(2), "generation 1 must be 3 finite numbers"),
        ([0.0, np.nan, 1.0], "generation 1 must be 3 finite numbers"),
        ("north", "the surrogate gradient must be a vector of numbers"),
    ],
)
def test_a_surrogate_that_returns_no_gradient_is_named(given, message):
    es = GuidedES(np.zeros(3), surrogate=lambda _: given)
    with pytest.raises(InputError, match=message):
        es.ask()
