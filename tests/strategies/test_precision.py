"""float64 problems are optimized in float64; the paths of CMA-ES agree with a derivation."""

import math

import numpy as np
import pytest
import torch

from escalade.errors import InputError
from escalade.perturbation import NoiseTable
from escalade.strategies import CEM, CMAES, SepCMAES
from escalade.strategies.evolution_paths import path_deviation
from escalade.strategies.registry import STRATEGIES
from escalade.training.strategy import build_strategy

TABLE = NoiseTable(5, 2**16)
PATHS = ["cma-es", "sep-cma-es", "ma-es", "lm-ma-es", "vd-cma", "canonical-es"]
every = pytest.mark.parametrize("name", STRATEGIES)
OPTIONS = {
    "openai-es": {"lr": "exponential:0.1:0.94", "sigma": "exponential:0.1:0.94"},
    "ars": {"lr": "exponential:0.1:0.94", "sigma": "exponential:0.1:0.94"},
    "pgpe": {"sigma": 0.3, "sigma_lr": 1.0, "lr": "exponential:0.1:0.94"},
    "simple-gaussian": {"sigma": 0.5, "sigma_lr": 0.5},
    "cem": {"sigma": 0.5, "elite": 0.5},
    "deep-ga": {"sigma": "exponential:0.3:0.95"},
}


def sphere(members):
    return ((members - 1000.1) ** 2).sum(dim=1)


@every
def test_sphere_around_1000_does_not_stall_at_float32_resolution(name):
    x0 = np.full(4, 1000.0)
    es = STRATEGIES[name].load()(
        x0, population=40, direction="minimize", perturbation=TABLE, **OPTIONS.get(name, {"sigma": 0.3})
    )
    for _ in range(400):
        members = es.ask()
        assert members.dtype == torch.float64
        es.tell(sphere(members))
    # Neighboring float32 numbers near 1000.1 are 6e-5 apart; the best they reach is 4 * (1.2e-5)**2.
    assert es.result.best.dtype == es.result.center.dtype == torch.float64
    assert es.result.best_fitness < (1e-8 if name == "les" else 1e-11)  # LES has a minimum sigma of 1e-4


@pytest.mark.parametrize("x0", ["fast", [None, 1.0], object(), [[1.0], [1.0, 2.0]]])
def test_x0_that_is_not_a_vector_is_rejected(x0):
    for name in ("snes", "cma-es"):
        with pytest.raises(InputError, match="x0"):
            STRATEGIES[name].load()(x0, 12)


@pytest.mark.parametrize("c", [0.01, 0.3, 0.9])
def test_path_deviation_without_selection_matches_its_recursion(c):
    variance = 0.0
    for updates in range(1, 40):
        variance = (1 - c) ** 2 * variance + c * (2 - c)  # of (1 - c) p + sqrt(c (2 - c)) z, var(z) = 1
        assert path_deviation(c, updates) == pytest.approx(variance**0.5, rel=1e-12)


@pytest.mark.parametrize("make", [CMAES, SepCMAES])
def test_paths_of_searches_without_selection_have_the_derived_deviation(make):
    rng = np.random.default_rng(1)
    updates, squares = 4, []
    for seed in range(60):
        es = make(np.zeros(30), 10, seed=seed, perturbation=TABLE)
        for number in range(updates + 3):
            es.sample()
            # Generations of equal fitness, here 0, 2 and 4, do not update the path.
            es.tell(rng.normal(size=10) if number % 2 or number > 4 else np.ones(10))
        assert es.updates == updates
        squares.append((np.asarray(es.path_sigma) ** 2).mean())
    expected = path_deviation(es.c_sigma, updates) ** 2
    # 1,800 numbers, whose squares have a relative standard error of sqrt(2 / 1800) = 0.033.
    assert np.mean(squares) == pytest.approx(expected, rel=0.1)
    assert path_deviation(es.c_sigma, updates + 1) ** 2 > 1.1 * expected  # the divisor used before


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("name", ["cma-es", "sep-cma-es", "ma-es", "lm-ma-es", "vd-cma", "canonical-es"])
def test_random_ties_neither_shrink_nor_widen_the_search(name, share):
    """Fitness takes two random values, so any growth or shrinkage comes from the arithmetic."""
    chance, grown = np.random.default_rng(5), []
    for seed in range(4):
        es = build_strategy(name, np.zeros(12), {"population": 24, "sigma": 1.0, "seed": seed})
        for _ in range(60):
            es.ask()
            es.tell((chance.random(24) < share).astype(float))
        grown.append(math.log(es.sigma))
    assert abs(np.mean(grown)) < 0.8, grown


def test_variance_of_tied_elites_equals_that_of_the_members():
    squares = []
    for seed in range(200):
        es = CEM(np.zeros(10), 10, sigma=1.0, elite=0.2, seed=seed, perturbation=TABLE)
        es.ask()
        es.tell(np.arange(10) > 0)  # nine of ten are equal, and there are two elites
        squares.append(es.deviations.square().mean())
    assert np.mean(squares) == pytest.approx(1, abs=0.05)
