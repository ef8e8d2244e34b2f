"""Strategies with dense members, compared with reference implementations and papers in float64.

The references receive exactly the noise of the members, in place of their own.
"""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch

from escalade import InputError, optimize
from escalade.perturbation import NoiseTable
from escalade.strategies import CRFMNES, LMMAES, MAES, RMES, VDCMA, XNES, CanonicalES, axis_shape

TABLE = NoiseTable(2, 2**15)
GENERATIONS = 5


def start(dimension):
    return np.random.default_rng(dimension).normal(0, 0.1, dimension)


def values(members, fitness):
    """Return losses: plain, far from 0, or equal for many members."""
    plain = ((members - 1) ** 2 * np.arange(1, members.shape[1] + 1)).sum(axis=1)
    return {"plain": plain, "offset": plain + 1e6, "tied": np.round(plain / plain.std())}[fitness]


def drawn(es):
    """Return the table's noise for this generation in float64, shape (n, dimension)."""
    return es.noise(es.drawn_count, es.generation)


def shared(by_place, losses):
    """Return weights by place, best first; tied members share the mean."""
    ordered = sorted(losses)
    return np.array([np.mean([w for w, f in zip(by_place, ordered, strict=True) if f == g]) for g in losses])


def half_weights(population):
    mu = population // 2
    raw = [math.log((population + 1) / 2) - math.log(rank) for rank in range(1, mu + 1)]
    return np.array([w / sum(raw) for w in raw] + [0.0] * (population - mu))


def close(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("fitness", ["plain", "offset"])
@pytest.mark.parametrize(("dimension", "population"), [(2, 6), (17, 12), (50, 16), (300, 20)])
def test_cr_fm_nes_equals_its_authors_package(dimension, population, fitness, monkeypatch):
    crfmnes = pytest.importorskip("crfmnes")
    es = CRFMNES(start(dimension), population, 0.3, direction="minimize", perturbation=TABLE)
    asked = []
    peer = crfmnes.CRFMNES(
        dimension, asked.append, start(dimension)[:, None], 0.3, population, v=es.axis[:, None]
    )
    if dimension < 5:
        peer.c1 = lambda feasible: 0.0  # the authors' value is negative and diverges
    order = [
        *range(0, population, 2),
        *range(1, population, 2),
    ]  # the authors' order: all first halves, then their mirrors
    for _ in range(40):
        members = es.ask().numpy()
        told = values(members, fitness)
        given = iter(told[order])
        monkeypatch.setattr(np.random, "randn", lambda *shape: drawn(es).T)
        peer.f = lambda x, given=given: asked.append(x) or next(given)
        asked.clear()
        peer.one_iteration()
        close(np.concatenate(asked, axis=1).T, members[order], 1e-7)
        es.tell(told)
        close(es.center.numpy(), peer.m[:, 0], 1e-7)
        close(es.deviations, peer.D[:, 0], 1e-7)
        close(es.axis, peer.v[:, 0], 1e-7)
        assert es.step_size == pytest.approx(peer.sigma, rel=1e-7)


SIZES = pytest.mark.parametrize(("dimension", "population"), [(2, 6), (17, 11), (300, 20)])
FITNESS = pytest.mark.parametrize("fitness", ["plain", "offset", "tied"])


@SIZES
@FITNESS
def test_ma_es_follows_its_paper(dimension, population, fitness):
    es = MAES(start(dimension), population, 0.3, direction="minimize", perturbation=TABLE)
    n, w, unit = dimension, half_weights(population), np.eye(dimension)
    mu_eff = 1 / sum(w**2)
    c_s, c_1 = (mu_eff + 2) / (mu_eff + n + 5), 2 / ((n + 1.3) ** 2 + mu_eff)
    c_w = min(1 - c_1, 2 * (mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + mu_eff))
    damping = 1 + c_s + 2 * max(0, math.sqrt((mu_eff - 1) / (n + 1)) - 1)
    chi = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    y, s, matrix, sigma = start(n), np.zeros(n), unit, 0.3
    for _ in range(GENERATIONS):
        z, members = drawn(es), es.ask().numpy()
        close(members, y + sigma * z @ matrix.T)
        told = values(members, fitness)
        weights = shared(w, told)
        y = y + sigma * sum(weight * matrix @ row for weight, row in zip(weights, z, strict=True))
        s = (1 - c_s) * s + math.sqrt(c_s * (2 - c_s) / sum(weights**2)) * weights @ z  # with shared weights
        spread = sum(weight * np.outer(row, row) for weight, row in zip(weights, z, strict=True))
        matrix = matrix @ (unit + c_1 / 2 * (np.outer(s, s) - unit) + c_w / 2 * (spread - unit))
        sigma *= math.exp(c_s / damping * (np.linalg.norm(s) / chi - 1))
        es.tell(told)
        close(es.center.numpy(), y)
        close(es.matrix, matrix)
        assert es.step_size == pytest.approx(sigma, rel=1e-9)


@pytest.mark.parametrize(("dimension", "population"), [(6, 8), (17, 11), (300, 20)])
@FITNESS
def test_lm_ma_es_follows_its_paper(dimension, population, fitness):
    es = LMMAES(start(dimension), population, 0.3, direction="minimize", perturbation=TABLE)
    n, lam, w = dimension, population, half_weights(population)
    rated = lam if 2 * lam < n else n / 4
    c_s = 2 * rated / n
    y, s, vectors, sigma = start(n), np.zeros(n), np.zeros((lam, n)), 0.3
    for generation in range(GENERATIONS):
        z, members = drawn(es), es.ask().numpy()
        d = z.copy()
        for j in range(min(generation, lam)):
            c_d = 1 / (1.5**j * n)
            d = (1 - c_d) * d + c_d * np.outer(d @ vectors[j], vectors[j])
        close(members, y + sigma * d)
        told = values(members, fitness)
        weights = shared(w, told)
        y = y + sigma * weights @ d
        s = (1 - c_s) * s + math.sqrt(c_s * (2 - c_s) / sum(weights**2)) * weights @ z  # with shared weights
        for j in range(lam):
            c_c = rated / (4**j * n)
            vectors[j] = (1 - c_c) * vectors[j] + math.sqrt(c_c * (2 - c_c) / sum(weights**2)) * weights @ z
        sigma *= math.exp(c_s / 2 * (s @ s / n - 1))
        es.tell(told)
        close(es.center.numpy(), y)
        assert es.step_size == pytest.approx(sigma, rel=1e-9)


@SIZES
@FITNESS
def test_xnes_follows_its_paper(dimension, population, fitness):
    linalg = pytest.importorskip("scipy.linalg")
    es = XNES(start(dimension), population, 0.3, direction="minimize", perturbation=TABLE)
    n, unit = dimension, np.eye(dimension)
    raw = [max(0, math.log(population / 2 + 1) - math.log(rank)) for rank in range(1, population + 1)]
    utilities = np.array(raw) / sum(raw) - 1 / population
    eta = (9 + 3 * math.log(n)) / (5 * n * math.sqrt(n))
    mean, shape, sigma = start(n), unit, 0.3
    for _ in range(GENERATIONS):
        z, members = drawn(es), es.ask().numpy()
        close(members, mean + sigma * z @ shape.T)
        told = values(members, fitness)
        u = shared(utilities, told)
        g_m = sum(weight * (np.outer(row, row) - unit) for weight, row in zip(u, z, strict=True))
        g_s = np.trace(g_m) / n
        mean = mean + sigma * shape @ (u @ z)
        sigma *= math.exp(eta / 2 * g_s)
        shape = shape @ linalg.expm(eta / 2 * (g_m - g_s * unit))
        es.tell(told)
        close(es.center.numpy(), mean)
        close(es.matrix, shape)
        assert es.step_size == pytest.approx(sigma, rel=1e-9)
        assert np.linalg.slogdet(es.matrix)[1] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("dimension", "seed"), [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1)])
def test_vd_cma_converges_in_few_dimensions(dimension, seed):
    """Regression: with an axis that appears and vanishes, the deviations kept changing without cause."""
    scales = np.logspace(0, 6, dimension)
    found = optimize(
        lambda x: (x**2 * scales).sum(axis=1),
        np.ones(dimension),
        "vd-cma",
        vectorized=True,
        budget=10_000,
        seed=seed,
    )
    assert found.best_fitness < 1e-8


@SIZES
@FITNESS
def test_vd_cma_shape_equals_that_of_pycma(dimension, population, fitness, monkeypatch):
    """The step size is compared with the rule of the authors' code, because pycma's differs."""
    sampler = pytest.importorskip("cma.restricted_gaussian_sampler")
    monkeypatch.setattr(axis_shape, "_SHORT", 0.0)
    es = VDCMA(start(dimension), population, 0.3, direction="minimize", perturbation=TABLE)
    peer = sampler.GaussVDSampler(dimension, randn=lambda n: es.axis * math.sqrt(n))
    n, w = dimension, half_weights(population)
    mu_eff = 1 / sum(w**2)
    c_sigma = 0.5 / (math.sqrt(n / mu_eff) + 1)
    d_sigma = 1 + c_sigma + 2 * max(0, math.sqrt((mu_eff - 1) / (n + 1)) - 1)
    chi = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    rates = peer._get_params2(mu_eff)
    monkeypatch.setattr(peer, "_get_params", lambda _: rates)
    mean, path, sigma = start(n), np.zeros(n), 0.3
    for _ in range(GENERATIONS):
        z, members = drawn(es), es.ask().numpy()
        y = np.array([peer.transform(row) for row in z])
        close(members, mean + sigma * y)
        told = values(members, fitness)
        weights = shared(w, told)
        mean = mean + sigma * weights @ y
        m = 1 / sum(weights**2)  # with shared weights if members tie, in pycma too
        path = (1 - c_sigma) * path + math.sqrt(c_sigma * (2 - c_sigma) * m) * weights @ z
        length = np.linalg.norm(path)
        sigma *= math.exp(c_sigma / d_sigma * (length / chi - 1))
        settled = bool(length**2 < (2 + 4 / (n + 1)) * n)
        peer.update(np.vstack([y[:1], y]), np.append(1, weights), hsig=settled)
        es.tell(told)
        close(es.center.numpy(), mean)
        close(es.deviations, peer.dvec)
        close(es.axis, peer.vvec)
        assert es.step_size == pytest.approx(sigma, rel=1e-9)


@SIZES
@FITNESS
@pytest.mark.parametrize("paths", [1, 2, 3])
def test_rm_es_follows_its_paper(dimension, population, fitness, paths):
    es = RMES(start(dimension), population, 0.3, paths=paths, direction="minimize", perturbation=TABLE)
    n, m, w, mu = dimension, paths, half_weights(population), population // 2
    c_cov, c_c = 1 / (3 * math.sqrt(n) + 5), 2 / (n + 7)
    mean, sigma, path, s = start(n), 0.3, np.zeros(n), 0.0
    remembered, since, before = [np.zeros(n)] * m, [0] * m, None
    for t in range(2 * GENERATIONS):
        noise, members = drawn(es), es.ask().numpy()
        y = (1 - c_cov) ** (m / 2) * noise[:, :n]
        for i in range(m):
            factor = math.sqrt(c_cov * (1 - c_cov) ** (m - 1 - i))
            y = y + factor * np.outer(noise[:, n + i], remembered[i])
        close(members, mean + sigma * y)
        told = values(members, fitness)
        weights = shared(w, told)
        step = weights @ y
        path = (1 - c_c) * path + math.sqrt(c_c * (2 - c_c) / sum(weights**2)) * step
        mean = mean + sigma * step
        gaps = [later - earlier for earlier, later in itertools.pairwise(since)]
        gone = 0 if t < m or not gaps or min(gaps) > n else gaps.index(min(gaps)) + 1
        remembered = remembered[:gone] + remembered[gone + 1 :] + [path]
        since = since[:gone] + since[gone + 1 :] + [t]
        best = sorted(told)[:mu]
        if before is not None:
            both = [*before, *best]
            rank = [sum(o < f for o in both) + sum(o == f for o in both) / 2 for f in both]
            q = sum(w[i] * (rank[i] - rank[mu + i]) for i in range(mu)) / mu
            s = 0.7 * s + 0.3 * (q - 0.3)
            sigma *= math.exp(s)
        before = best
        es.tell(told)
        close(es.center.numpy(), mean)
        close(es.paths, np.array(remembered))
        assert es.step_size == pytest.approx(sigma, rel=1e-9)


@SIZES
@FITNESS
@pytest.mark.parametrize("parents", [None, 3])
def test_canonical_es_follows_its_authors_code(dimension, population, fitness, parents):
    es = CanonicalES(
        start(dimension), population, 0.3, parents=parents, direction="minimize", perturbation=TABLE
    )
    n, mu = dimension, parents or population // 2
    raw = [math.log(mu + 0.5) - math.log(rank) for rank in range(1, mu + 1)]
    w = np.array([one / sum(raw) for one in raw] + [0.0] * (population - mu))
    mu_eff = 1 / sum(w**2)
    c = (mu_eff + 2) / (n + mu_eff + 5)
    theta, path, sigma = start(n), np.zeros(n), 0.3
    for _ in range(GENERATIONS):
        members = es.ask().numpy()
        z = (members - theta) / sigma
        told = values(members, fitness)
        weights = shared(w, told)
        step = weights @ z
        theta = theta + sigma * step
        path = (1 - c) * path + math.sqrt(c * (2 - c) / sum(weights**2)) * step
        sigma *= math.exp(c / 2 * (path @ path / n - 1))
        es.tell(told)
        close(es.center.numpy(), theta)
        assert es.step_size == pytest.approx(sigma, rel=1e-6)


@pytest.mark.parametrize("fitness", ["plain", "tied"])
def test_ties_of_cr_fm_nes_share_their_weights(fitness):
    """A tied pair does not affect the step, in any order of equal members."""
    es = CRFMNES(np.zeros(8), 8, 0.3, perturbation=TABLE)
    before = es.center.clone()
    es.ask()
    es.tell([1.0, 1.0] * 4 if fitness == "tied" else [3.0, 3.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0])
    assert torch.allclose(es.center, before, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CRFMNES(np.zeros(4), 7), "population 7 is odd"),
        (lambda: CanonicalES(np.zeros(3), 8, parents=9), "parents 9 must be at least 1 and at most"),
        (lambda: XNES(np.zeros(3), 3), "population 3 is too small"),
        (lambda: RMES(np.zeros(3), paths=0), "paths 0 must be at least 1"),
        (lambda: MAES(np.zeros(3), sigma="linear:1:0.1:8"), "which this strategy adapts"),
    ],
)
def test_invalid_arguments_are_rejected_by_name(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("population", [8, 40])
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_cr_fm_nes_converges_in_few_dimensions(dimension, population):
    es = CRFMNES(np.zeros(dimension), population, 0.2, direction="minimize", perturbation=TABLE)
    for _ in range(300):
        es.tell(((es.ask().numpy() - 3) ** 2).sum(axis=1))
    np.testing.assert_allclose(es.center.numpy(), 3, atol=1e-3)


def test_search_with_a_diverging_shape_returns_its_best_result():
    """The published algorithm diverges here, and so does the authors' package."""
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))[0]

    def function(x):
        y = x @ turned
        return y[:, 0] ** 2 + 1e6 * (y[:, 1:] ** 2).sum(axis=1)

    options = {"population": 40, "sigma": 2.0, "budget": 20_000, "vectorized": True, "seed": 7}
    found = optimize(function, np.full(20, 3.0), "cr-fm-nes", **options)
    assert (found.stop_reason, found.best_fitness < 100) == ("diverged", True)
    limited = optimize(function, np.full(20, 3.0), partial(CRFMNES, max_change=0.7), **options)
    assert limited.stop_reason == "budget"
