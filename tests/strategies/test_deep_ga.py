"""Deep GA compared with its paper, and the cost of its members."""

import pickle

import numpy as np
import pytest
import torch

from escalade import InputError
from escalade.perturbation import NoiseTable, genomes, write_all
from escalade.perturbation.address import Stream, hash64
from escalade.strategies import DeepGA

TABLE = NoiseTable(2, 2**15)


def noise(seed, generation, number, dimension):
    out = np.empty(dimension)
    TABLE.draw(seed, generation, number + 1, dimension).write(number, 1.0, out)
    return out


def values(rows, generation):
    """Return noisy fitness to maximize, so that a member that was lucky once is not the best."""
    luck = np.random.default_rng(generation).normal(0, 3, len(rows))
    return -((rows - 1) ** 2).sum(axis=1) + luck


@pytest.mark.parametrize("fitness", ["plain", "offset", "tied"])
@pytest.mark.parametrize(("dimension", "population", "elites"), [(2, 12, 1), (17, 20, 3), (300, 41, 2)])
def test_search_follows_algorithm_1(dimension, population, elites, fitness):
    """Algorithm 1 with dense parameters, and the elites' mean fitness in place of 30 episodes."""
    start, sigma, parents, seed = np.linspace(-1, 1, dimension), 0.3, 4, 9
    es = DeepGA(start, population, sigma, parents=parents, elites=elites, seed=seed, perturbation=TABLE)
    breeding, living = [start], []  # for each elite: its parameters and every fitness so far
    for generation in range(6):
        expected = [row for row, _ in living]
        for number in range(len(living), population):
            drawn = int(hash64(seed, int(Stream.STRATEGY), generation, number) % len(breeding))
            expected.append(breeding[drawn] + sigma * noise(seed, generation, number, dimension))
        rows = es.ask().numpy()
        np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-12)
        told = values(rows, generation)
        told = {"plain": told, "offset": told + 1e6, "tied": np.round(told / told.std())}[fitness]
        shown = [[*(living[i][1] if i < len(living) else []), value] for i, value in enumerate(told)]
        order = sorted(range(population), key=lambda i: -np.mean(shown[i]))  # ties stay in order
        living = [(rows[i], shown[i]) for i in order[:elites]]
        breeding = [rows[i] for i in order[:parents]]
        proven = [i for i in order if len(shown[i]) > 1]
        es.tell(told)
        np.testing.assert_allclose(es.center.numpy(), rows[(proven or order)[0]], rtol=1e-12, atol=1e-12)


def test_members_are_bit_identical_without_cached_parents():
    es = DeepGA(np.zeros(50, np.float32), 30, 0.1, parents=5, perturbation=TABLE)
    for _ in range(20):
        es.tell(values(es.ask().numpy(), es.generation))
    population = es.sample()
    there = pickle.loads(pickle.dumps(population))
    known = write_all(population)
    genomes._parents.clear()
    backwards = range(population.size - 1, -1, -1)
    np.testing.assert_array_equal(write_all(there, backwards)[::-1], known)


def test_process_caches_parents_of_two_generations_and_adds_one_perturbation_per_child(monkeypatch):
    genomes._parents.clear()
    es = DeepGA(np.zeros(50, np.float32), 40, 0.1, parents=4, elites=2, perturbation=TABLE)
    written = []
    write = type(TABLE.draw(0, 0, 1, 50)).write
    counted = lambda *given: written.append(given[1]) or write(*given)  # noqa: E731
    monkeypatch.setattr(type(TABLE.draw(0, 0, 1, 50)), "write", counted)
    for _ in range(30):
        written.clear()
        es.tell(values(es.ask().numpy(), es.generation))
        assert len(genomes._parents) <= 2 * (4 + 2)  # the breeding parents and the parents of the elites
    # Forty members, four parents made before, the elites' parents and the new center.
    assert len(written) <= 40 + 4 + 2 + 5


def test_member_is_pickled_as_its_mutations_only():
    es = DeepGA(np.zeros(10, np.float32), 100, 0.1, parents=5, perturbation=NoiseTable(3, 2**15))
    for _ in range(50):
        es.sample()
        es.tell(np.random.default_rng(es.generation).normal(size=100))
    assert len(pickle.dumps(es.sample())) < 100 * 60 + 5 * 50 * 60


def test_searches_with_the_same_seed_and_different_starts_do_not_share_parents():
    searches = [DeepGA(np.full(8, x), 20, 0.1, seed=1, perturbation=TABLE) for x in (0.0, 5.0)]
    for _ in range(4):
        for search in searches:
            search.tell(-np.arange(20.0) - (search.ask().numpy() ** 2).sum(axis=1))
    low, high = (search.ask().numpy() for search in searches)
    assert low.mean() < 2
    assert high.mean() > 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parents": 0}, "parents 0 must be at least 1"),
        ({"parents": 20}, "parents 20 must be below the population, 20"),
        ({"elites": 25}, "elites 25 must be below the population, 20"),
    ],
)
def test_invalid_arguments_are_rejected_by_name(options, message):
    with pytest.raises(InputError, match=message):
        DeepGA(np.zeros(3), 20, **options)


def test_lucky_elite_is_averaged_down_over_generations_of_equal_fitness():
    es = DeepGA(np.zeros(3), 10, elites=1, perturbation=TABLE)
    lucky = es.ask()[7].clone()
    es.tell([0.0] * 7 + [1.0] + [0.0] * 2)
    for _ in range(50):
        assert torch.equal(es.ask()[0], lucky)
        es.tell([0.0] * 10)
    assert (es.sums.tolist(), es.counts.tolist()) == ([1.0], [51.0])
    better = es.ask()[3].clone()
    es.tell([0.0] * 3 + [0.5] + [0.0] * 6)
    assert torch.equal(es.ask()[0], better)
