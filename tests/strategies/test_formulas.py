"""One ``tell`` of each strategy, and several in a row, against the papers' formulas in float64.

Nothing here comes from the package but the strategy under test: the noise is rebuilt as
(member - center) / deviation from the members of ``ask``, and ranks, utilities, optimizers and updates
are written out again, as plainly as in the papers.
"""

import math
from functools import partial

import numpy as np
import pytest
import torch

from escalade.perturbation import NoiseTable
from escalade.strategies import ARS, CEM, CMAES, PGPE, SNES, ClipUp, OpenAIES, SepCMAES, SimpleGaussian

TABLE = NoiseTable(2, 2**15)
GENERATIONS = 6

# --- the papers, in float64 ---------------------------------------------------------------------------


def centered_ranks(fitness):
    places = [sum(g < f for g in fitness) + (sum(g == f for g in fitness) - 1) / 2 for f in fitness]
    return np.array(places) / (len(fitness) - 1) - 0.5


def tied(by_place, fitness):
    """Return weights by place, best first; tied members share the mean."""
    best_first = sorted(fitness, reverse=True)
    return np.array(
        [np.mean([w for w, f in zip(by_place, best_first, strict=True) if f == g]) for g in fitness]
    )


def nes_utilities(fitness):
    n = len(fitness)
    weights = np.array([max(0.0, math.log(n / 2 + 1) - math.log(k)) for k in range(1, n + 1)])
    return tied(weights / weights.sum() - 1 / n, fitness)


class Sgd:
    def __init__(self, lr, momentum=0.0):
        self.lr, self.momentum, self.v = lr, momentum, 0.0

    def step(self, gradient):
        self.v = self.momentum * self.v + gradient
        return -self.lr * self.v


class Adam:
    def __init__(self, lr):
        self.lr, self.m, self.v, self.t = lr, 0.0, 0.0, 0

    def step(self, gradient):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        m, v = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        return -self.lr * m / (np.sqrt(v) + 1e-8)


class PaperClipUp:
    def __init__(self, lr, max_speed, momentum=0.9):
        self.lr, self.max_speed, self.momentum, self.v = lr, max_speed, momentum, 0.0

    def step(self, gradient):
        self.v = self.momentum * self.v - self.lr * gradient / np.linalg.norm(gradient)
        if np.linalg.norm(self.v) > self.max_speed:
            self.v = self.v * self.max_speed / np.linalg.norm(self.v)
        return self.v


# --- helpers --------------------------------------------------------------------------------------------


def first_center(dimension):
    return np.random.default_rng(dimension).normal(0, 0.1, dimension).astype(np.float32)


def fitnesses(population, ties):
    rng = np.random.default_rng(population)
    for _ in range(GENERATIONS):
        values = rng.normal(0, 5, population)
        yield np.round(values / 4) if ties else values


def noise(strategy, deviation):
    members = strategy.ask().numpy().astype(np.float64)
    return (members - strategy.center.numpy().astype(np.float64)) / deviation


def tell_and_compare(strategy, fitness, before, expected):
    """Assert that the step is right to 1e-5 of its length, and so is each coordinate of the center.

    ``before`` and ``expected`` are the reference's centers, which it computed in float64 from the start.
    """
    start = strategy.center.numpy().astype(np.float64)
    strategy.tell(fitness)
    after = strategy.center.numpy().astype(np.float64)
    rounding = 2.0**-23 * np.linalg.norm(after)  # the center itself is float32
    wrong = np.linalg.norm((after - start) - (expected - before))
    assert wrong <= 1e-5 * np.linalg.norm(expected - before) + rounding
    # A coordinate that crosses zero keeps the rounding error of the earlier float32 values.
    largest = np.abs([before, expected]).max()
    np.testing.assert_allclose(after, expected, rtol=1e-5, atol=1e-5 * largest)


OPTIMIZERS = {
    "sgd": (partial(torch.optim.SGD, lr=0.05), partial(Sgd, 0.05)),
    "momentum": (partial(torch.optim.SGD, lr=0.05, momentum=0.9), partial(Sgd, 0.05, 0.9)),
    "adam": (partial(torch.optim.Adam, lr=0.02), partial(Adam, 0.02)),
    "clipup": (partial(ClipUp, lr=0.05, max_speed=0.08), partial(PaperClipUp, 0.05, 0.08)),
}


@pytest.mark.parametrize("dimension", [1, 8, 33])
@pytest.mark.parametrize("population", [2, 10, 32])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_openai_es(dimension, population, ties, optimizer, weight_decay):
    make, reference = OPTIMIZERS[optimizer]
    es = OpenAIES(
        first_center(dimension),
        population,
        0.1,
        optimizer=make,
        weight_decay=weight_decay,
        perturbation=TABLE,
    )
    descent, center = reference(), es.center.numpy().astype(np.float64)
    for fitness in fitnesses(population, ties):
        eps, before = noise(es, 0.1), center
        if len(set(fitness)) > 1:
            gradient = centered_ranks(fitness) @ eps / (population * 0.1)
            center = before + descent.step(-gradient + weight_decay * before)
        tell_and_compare(es, fitness, before, center)


def test_openai_es_with_schedules():
    es = OpenAIES(
        first_center(8),
        10,
        "exponential:0.2:0.5:0.03",
        optimizer=OPTIMIZERS["momentum"][0],
        lr=lambda g: 0.1 / (1 + g),
        perturbation=TABLE,
    )
    descent, center = Sgd(math.nan, 0.9), es.center.numpy().astype(np.float64)
    for generation, fitness in enumerate(fitnesses(10, False)):
        sigma, descent.lr = max(0.2 * 0.5**generation, 0.03), 0.1 / (1 + generation)
        eps, before = noise(es, sigma), center
        center = before + descent.step(-(centered_ranks(fitness) @ eps) / (10 * sigma))
        tell_and_compare(es, fitness, before, center)


@pytest.mark.parametrize("dimension", [1, 8, 33])
@pytest.mark.parametrize(("population", "top"), [(2, None), (10, None), (10, 5), (32, 5), (10, 1)])
def test_ars(dimension, population, top):
    es = ARS(
        first_center(dimension),
        population,
        0.05,
        lr="linear:0.1:0.02:4",
        top_directions=top,
        perturbation=TABLE,
    )
    center = es.center.numpy().astype(np.float64)
    for generation, fitness in enumerate(fitnesses(population, False)):
        lr = 0.1 - 0.02 * min(generation, 4)
        delta, before = noise(es, 0.05)[0::2], center
        plus, minus = fitness[0::2], fitness[1::2]
        best = sorted(range(population // 2), key=lambda k: -max(plus[k], minus[k]))
        best = best[: top or len(best)]
        spread = np.std([*plus[best], *minus[best]])
        center = before + lr / (len(best) * spread) * sum((plus[k] - minus[k]) * delta[k] for k in best)
        tell_and_compare(es, fitness, before, center)


@pytest.mark.parametrize("returns", [1e-160, 1e-45])
def test_ars_does_not_move_if_returns_differ_only_by_rounding(returns):
    es = ARS(first_center(4), 2, 0.05, perturbation=TABLE)
    before = es.center.clone()
    es.ask()
    es.tell(returns * np.array([1.0, 2.0]))
    assert torch.equal(es.center, before)


def test_ars_keeps_every_direction_tied_with_the_last_one():
    es = ARS(first_center(4), 6, 0.05, lr=0.1, top_directions=2, perturbation=TABLE)
    before, delta = es.center.numpy().astype(np.float64), noise(es, 0.05)[0::2]
    fitness = [9.0, 1.0, 5.0, 2.0, 3.0, 5.0]  # the second and third direction tie at 5
    step = (8 * delta[0] + 3 * delta[1] - 2 * delta[2]) * 0.1 / (3 * np.std([9, 1, 5, 2, 3, 5]))
    tell_and_compare(es, fitness, before, before + step)


@pytest.mark.parametrize("dimension", [1, 8, 33])
@pytest.mark.parametrize(
    ("population", "mirrored"), [(2, False), (5, False), (9, False), (32, False), (10, True)]
)
@pytest.mark.parametrize("ties", [False, True])
def test_snes(dimension, population, mirrored, ties):
    sigma = np.linspace(0.05, 0.3, dimension).astype(np.float32).astype(np.float64)
    es = SNES(
        first_center(dimension), population, sigma, lr="step:1:0.5:2", mirrored=mirrored, perturbation=TABLE
    )
    center, rate = (
        es.center.numpy().astype(np.float64),
        (3 + math.log(dimension)) / (5 * math.sqrt(dimension)),
    )
    for generation, fitness in enumerate(fitnesses(population, ties)):
        s, before = noise(es, es.deviations.numpy().astype(np.float64)), center
        if len(set(fitness)) > 1:
            u = nes_utilities(fitness)
            center = before + 0.5 ** (generation // 2) * sigma * (u @ s)
            sigma = sigma * np.exp(rate / 2 * (u @ (s**2 - 1)))
        tell_and_compare(es, fitness, before, center)
        np.testing.assert_allclose(es.deviations.numpy(), sigma, rtol=1e-5)
        assert es.sigma == pytest.approx(sigma.mean(), rel=1e-5)


@pytest.mark.parametrize("dimension", [1, 8, 33])
@pytest.mark.parametrize("population", [2, 10, 32])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("optimizer", ["clipup", "adam"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_pgpe(dimension, population, ties, optimizer, weight_decay):
    make, reference = OPTIMIZERS[optimizer]
    sigma = np.linspace(0.05, 0.3, dimension).astype(np.float32).astype(np.float64)
    es = PGPE(
        first_center(dimension),
        population,
        sigma,
        optimizer=make,
        weight_decay=weight_decay,
        sigma_lr="exponential:2:0.5",
        perturbation=TABLE,
    )
    descent, center = reference(), es.center.numpy().astype(np.float64)
    for generation, fitness in enumerate(fitnesses(population, ties)):
        deviation, before = es.deviations.numpy().astype(np.float64), center
        if len(set(fitness)) > 1:
            d = noise(es, deviation)[0::2] * sigma
            u = centered_ranks(fitness)
            plus, minus = u[0::2], u[1::2]
            of_center = np.mean([dk * (p - m) / 2 for dk, p, m in zip(d, plus, minus, strict=True)], axis=0)
            of_sigma = np.mean(
                [
                    (dk**2 - sigma**2) / sigma * ((p + m) / 2 - u.mean())
                    for dk, p, m in zip(d, plus, minus, strict=True)
                ],
                axis=0,
            )
            center = before + descent.step(-of_center + weight_decay * before)
            sigma = np.clip(sigma + 2 * 0.5**generation * of_sigma, 0.8 * sigma, 1.2 * sigma)
        tell_and_compare(es, fitness, before, center)
        np.testing.assert_allclose(es.deviations.numpy(), sigma, rtol=1e-5)


def test_pgpe_configures_clipup_by_the_rule_of_its_paper():
    es = PGPE(np.zeros(16), 4, 0.3, perturbation=TABLE)
    max_speed = 0.3 * math.sqrt(16) / 15
    assert es.lr == pytest.approx(max_speed / 2)
    es.sample()
    es.tell([0.0, 1.0, 2.0, 3.0])
    assert float(es.center.norm()) == pytest.approx(max_speed / 2, rel=1e-5)
    for _ in range(5):
        before = es.center.clone()
        es.sample()
        es.tell([0.0, 1.0, 2.0, 3.0])
        assert float((es.center - before).norm()) <= max_speed * (1 + 1e-5)


@pytest.mark.parametrize(("population", "elite", "elites"), [(10, 0.5, 5), (9, 0.3, 2), (100, 0.29, 29)])
@pytest.mark.parametrize("ties", [False, True])
def test_simple_gaussian(population, elite, elites, ties):
    sigma = np.linspace(0.05, 0.3, 8).astype(np.float32).astype(np.float64)
    es = SimpleGaussian(
        first_center(8), population, sigma, elite=elite, lr=0.7, sigma_lr=0.4, perturbation=TABLE
    )
    center = es.center.numpy().astype(np.float64)
    for fitness in fitnesses(population, ties):
        steps, before = noise(es, es.deviations.numpy().astype(np.float64)) * sigma, center
        weights = tied([1 / elites] * elites + [0.0] * (population - elites), fitness)
        if len(set(fitness)) > 1:
            center = before + 0.7 * (weights @ steps)
            sigma = 0.6 * sigma + 0.4 * np.sqrt(weights @ steps**2)
        tell_and_compare(es, fitness, before, center)
        np.testing.assert_allclose(es.deviations.numpy(), sigma, rtol=1e-5)


@pytest.mark.parametrize(("population", "elite", "elites"), [(10, 0.5, 5), (9, 0.34, 3), (100, 0.29, 29)])
@pytest.mark.parametrize("noise_", [None, "linear:0.01:0:4"])
def test_cem(population, elite, elites, noise_):
    sigma = np.linspace(0.05, 0.3, 8).astype(np.float32).astype(np.float64)
    es = CEM(
        first_center(8),
        population,
        sigma,
        elite=elite,
        lr=0.7,
        sigma_lr=0.4,
        noise=noise_,
        perturbation=TABLE,
    )
    center = es.center.numpy().astype(np.float64)
    for generation, fitness in enumerate(fitnesses(population, False)):
        steps, before = noise(es, es.deviations.numpy().astype(np.float64)) * sigma, center
        best = steps[np.argsort(-fitness)[:elites]]
        extra = 0.01 * (1 - min(generation, 4) / 4) if noise_ else 0.0
        center = before + 0.7 * best.mean(axis=0)
        sigma = 0.6 * sigma + 0.4 * np.sqrt(best.var(axis=0, ddof=1) + extra)
        tell_and_compare(es, fitness, before, center)
        np.testing.assert_allclose(es.deviations.numpy(), sigma, rtol=1e-4 if elites < 4 else 2e-5)


@pytest.mark.parametrize(("dimension", "population"), [(2, 4), (8, 9), (33, 14)])
@pytest.mark.parametrize("ties", [False, True])
def test_sep_cma_es(dimension, population, ties):
    es = SepCMAES(first_center(dimension), population, 0.3, perturbation=TABLE)
    n, mu = dimension, population // 2
    w = np.array([math.log(mu + 1) - math.log(i) for i in range(1, mu + 1)])
    w = np.concatenate([w / w.sum(), np.zeros(population - mu)])
    m = 1 / (w**2).sum()
    c_s, c_c = (m + 2) / (n + m + 3), 4 / (n + 4)
    d_s = 1 + c_s + 2 * max(0, math.sqrt((m - 1) / (n + 1)) - 1)
    rate = 1 / m * 2 / (n + math.sqrt(2)) ** 2 + (1 - 1 / m) * min(1, (2 * m - 1) / ((n + 2) ** 2 + m))
    rate = min(1, (n + 2) / 3 * rate)
    chi = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    sigma, variances, p_s, p_c = float(np.float32(0.3)), np.ones(n), np.zeros(n), np.zeros(n)
    center = es.center.numpy().astype(np.float64)
    for generation, fitness in enumerate(fitnesses(population, ties)):
        z, before = noise(es, es.deviations.numpy().astype(np.float64)), center
        if len(set(fitness)) > 1:
            weights = tied(w, fitness)
            y = np.sqrt(variances) * z
            center = before + sigma * (weights @ y)
            of_these = 1 / (weights**2).sum()  # larger than m if members tie
            p_s = (1 - c_s) * p_s + math.sqrt(c_s * (2 - c_s) * of_these) * (weights @ z)
            settled = math.sqrt(1 - (1 - c_s) ** (2 * (generation + 1)))
            h = float(np.linalg.norm(p_s) / settled < (1.4 + 2 / (n + 1)) * chi)
            p_c = (1 - c_c) * p_c + h * math.sqrt(c_c * (2 - c_c) * of_these) * (weights @ y)
            variances = (1 - rate) * variances + rate * (p_c**2 / m + (1 - 1 / m) * (weights @ y**2))
            sigma *= math.exp(c_s / d_s * (np.linalg.norm(p_s) / chi - 1))
        tell_and_compare(es, fitness, before, center)
        np.testing.assert_allclose(es.deviations.numpy(), sigma * np.sqrt(variances), rtol=1e-5)


def use_second_version_formulas(peer, n, population):
    """Replace equations 50 to 53 and 58 by those of the tutorial's second version; cmaes has the first's."""
    raw = np.array([math.log((population + 1) / 2) - math.log(i) for i in range(1, population + 1)])
    better, worse = raw[: population // 2], raw[population // 2 :]
    m, m_minus = sum(better) ** 2 / sum(better**2), sum(worse) ** 2 / sum(worse**2)
    c_1 = peer._c1
    c_mu = peer._cmu = min(1 - c_1, 2 * (0.25 + m + 1 / m - 2) / ((n + 2) ** 2 + m))
    least = min(1 + c_1 / c_mu, 1 + 2 * m_minus / (m + 2), (1 - c_1 - c_mu) / (n * c_mu))
    peer._weights = np.where(raw >= 0, raw / sum(raw[raw > 0]), raw * least / -sum(raw[raw < 0]))


@pytest.mark.parametrize(("dimension", "population"), [(2, 6), (5, 9), (20, 12)])
def test_cma_es_equals_the_cmaes_package(dimension, population):
    cmaes = pytest.importorskip("cmaes")
    es = CMAES(first_center(dimension), population, 0.3, direction="minimize", perturbation=TABLE)
    peer = cmaes.CMA(es.center.numpy().astype(np.float64), 0.3, population_size=population)
    use_second_version_formulas(peer, dimension, population)
    for _ in range(25):
        members = es.ask().numpy().astype(np.float64)
        values = ((members - 1) ** 2 * np.arange(1, dimension + 1)).sum(axis=1)
        es.tell(values)
        peer.tell(list(zip(members, values, strict=True)))
        np.testing.assert_allclose(es.center.numpy(), peer.mean, rtol=1e-4, atol=1e-5)
        assert es.step_size == pytest.approx(peer._sigma, rel=1e-4)
        np.testing.assert_allclose(es.covariance, peer._C, rtol=1e-3, atol=1e-4 * abs(peer._C).max())
