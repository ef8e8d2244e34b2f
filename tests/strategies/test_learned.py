"""The learned and the discovered strategy, compared with their papers in float64 and with evosax."""

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file

from escalade.perturbation import NoiseTable
from escalade.strategies import DES, LES, les

TABLE = NoiseTable(2, 2**15)


def noise(es):
    """Return this generation's noise of all members, shape (population, dimension)."""
    draws = TABLE.draw(es.seed, es.generation, es.population_size, es.dimension)
    z = np.empty((es.population_size, es.dimension))
    for number, row in enumerate(z):
        draws.write(number, 1.0, row)
    return z


def fitnesses(members, kind):
    plain = -((members - 1) ** 2 * np.arange(1, members.shape[1] + 1)).sum(axis=1)
    return {"plain": plain, "offset": plain + 1e6, "tied": np.round(plain / plain.std())}[kind]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x - np.max(x)) / np.exp(x - np.max(x)).sum()


class PaperDES:
    def __init__(self, center, sigma):
        self.center, self.sigma = center.copy(), np.full(len(center), sigma)

    def step(self, z, fitness, generation):
        n = len(fitness)
        by_place = softmax([20 * (1 - sigmoid(12.5 * (place / (n - 1) - 0.5))) for place in range(n)])
        order = sorted(fitness, reverse=True)
        w = np.array([np.mean([v for v, g in zip(by_place, order, strict=True) if g == f]) for f in fitness])
        members = self.center + self.sigma * z
        moved = w @ members
        spread = np.sqrt(w @ (members - self.center) ** 2)
        self.center, self.sigma = moved, self.sigma + 0.1 * (spread - self.sigma)


class PaperLES:
    def __init__(self, center, sigma):
        self.center, self.sigma, self.best = center.copy(), np.full(len(center), sigma), -np.inf
        self.moved, self.whitened = np.zeros((3, len(center))), np.zeros((3, len(center)))
        self.w = {name: weights.astype(np.float64) for name, weights in load_file(les._WEIGHTS).items()}

    def dense(self, name, x):
        return x @ self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def step(self, z, fitness, generation):
        n = len(fitness)
        loss = -fitness
        places = [sum(g < f for g in loss) + (sum(g == f for g in loss) - 1) / 2 for f in loss]
        seen = np.array(
            [
                [float(f > self.best), place / (n - 1) - 0.5, (-f - loss.mean()) / (loss.std() + 1e-10)]
                for f, place in zip(fitness, places, strict=True)
            ]
        )
        keys, queries, values = (self.dense(name, seen) for name in ("keys", "queries", "values"))
        heard = np.array([softmax(keys @ query / np.sqrt(n)) @ values[:, 0] for query in queries])
        w = softmax(heard)
        for horizon, rate in enumerate((0.1, 0.5, 0.9)):
            self.moved[horizon] += rate * (w @ (self.sigma * z) - self.moved[horizon])
            self.whitened[horizon] += rate * (w @ z - self.whitened[horizon])
        spans = [1, 3, 10, 30, 50, 100, 250, 500, 750, 1000, 1250, 1500, 2000]
        times = [np.tanh(generation / span - 1) for span in spans]
        for d in range(len(self.center)):
            told = np.concatenate([self.moved[:, d], self.whitened[:, d], times])
            hidden = np.maximum(self.dense("hidden", told), 0)
            rates = [sigmoid(self.dense(name, hidden)[0]) for name in ("center", "deviations")]
            spread = np.sqrt(w @ (self.sigma[d] * z[:, d]) ** 2 + 1e-8)
            self.center[d] += rates[0] * self.sigma[d] * (w @ z[:, d])
            self.sigma[d] += rates[1] * (spread - self.sigma[d])
        self.best = max(self.best, fitness.max())


@pytest.mark.parametrize("fitness", ["plain", "offset", "tied"])
@pytest.mark.parametrize(("dimension", "population"), [(2, 5), (17, 12), (300, 20)])
@pytest.mark.parametrize(("kind", "paper"), [(DES, PaperDES), (LES, PaperLES)])
def test_step_matches_the_paper(kind, paper, dimension, population, fitness):
    start = np.random.default_rng(dimension).normal(0, 0.1, dimension)
    es, expected = kind(start, population, 0.3, perturbation=TABLE), paper(start, 0.3)
    for generation in range(5):
        z = noise(es)
        members = es.ask().numpy()
        np.testing.assert_allclose(members, expected.center + expected.sigma * z, rtol=1e-5, atol=1e-8)
        told = fitnesses(members, fitness)
        es.tell(told)
        expected.step(z, told, generation)
        np.testing.assert_allclose(es.center.numpy(), expected.center, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(es.deviations.numpy(), expected.sigma, rtol=1e-5)


# Mean and std after five steps of LearnedES and DiscoveredES in evosax 0.3.2, with these members and losses.
WITNESS = {
    "LES": (
        [0.38822561502456665, 0.3293704092502594, 0.9121042490005493],
        [0.27829310297966003, 0.18354102969169617, 0.17421674728393555],
    ),
    "DES": (
        [0.2655571401119232, 0.44024181365966797, 0.882327139377594],
        [0.2497113049030304, 0.24305085837841034, 0.2566256523132324],
    ),
}


@pytest.mark.parametrize("kind", [DES, LES])
def test_five_generations_match_evosax(kind, monkeypatch):
    z = np.sin(np.arange(1, 91) ** 2).reshape(5, 6, 3)
    es = kind(np.array([0.1, -0.2, 0.3]), 6, 0.3, direction="minimize")
    monkeypatch.setattr(es, "noise_sum", lambda w: torch.from_numpy(w @ z[es.generation]))
    monkeypatch.setattr(es, "square_sum", lambda w: torch.from_numpy(w @ z[es.generation] ** 2))
    for generation in range(5):
        es.sample()
        members = es.center.numpy() + es.deviations.numpy() * z[generation]
        es.tell(((members - 1) ** 2 * [1, 2, 3]).sum(axis=1))
    center, deviations = WITNESS[kind.__name__]
    np.testing.assert_allclose(es.center.numpy(), center, rtol=1e-5)
    np.testing.assert_allclose(es.deviations.numpy(), deviations, rtol=1e-5)


def test_published_weights_are_read_once_and_name_their_source():
    assert les.layers() is les.layers()
    with safe_open(les._WEIGHTS, "numpy") as file:
        assert file.metadata() == {
            "source": "evosax 0.3.2, 2023_10_les_v2.pkl, by R. T. Lange", "license": "Apache-2.0"
        }  # fmt: skip
    assert sum(weights.size for weights in load_file(les._WEIGHTS).values()) == 246


def test_les_records_the_best_of_an_all_equal_generation():
    es = LES(np.zeros(3), 8, perturbation=TABLE)
    es.ask(), es.tell([5.0] * 8)
    assert es.record == 5.0
    es.ask(), es.tell([np.nan] * 8)
    assert es.record == 5.0
