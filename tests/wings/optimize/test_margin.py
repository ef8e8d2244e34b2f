"""CMA-ES with margin, against cmaes and by what it promises."""

import numpy as np
import pytest

import escalade
from escalade import InputError
from escalade.perturbation import NoiseTable
from escalade.strategies.bounds import Bounds
from escalade.strategies.cma import CMAES
from escalade.wings.optimize.margin import MarginCMAES, lattice_of

TABLE = NoiseTable(2, 2**15)
BOUNDS = [(-3, 3), (0, 1), (None, None), (-5.5, 9.2), (None, None)]


def searched(scale, seed=1, sigma=0.7):
    scale = np.broadcast_to(scale, 5)
    lattice = lattice_of([0, 1, 3], Bounds(BOUNDS, 5), scale)
    start = np.array([1.2, 0.4, -1.0, 3.3, 0.5]) / scale
    return MarginCMAES(start, 8, sigma, lattice=lattice, seed=seed, direction="minimize", perturbation=TABLE)


def values(points, fitness):
    plain = ((points - np.array([3, 1, 0.3, -2, -0.7])) ** 2 * np.array([1, 9, 4, 100, 25])).sum(axis=1)
    return {"plain": plain, "offset": plain + 1e6, "tied": np.round(plain / plain.std())}[fitness]


@pytest.mark.parametrize("fitness", ["plain", "offset", "tied"])
@pytest.mark.parametrize("sigma", [0.01])
def test_the_margin_is_that_of_cmaes(monkeypatch, fitness, sigma):
    cmaes = pytest.importorskip("cmaes")
    es = searched(1.0, sigma=sigma)
    whole, steps = es.lattice.places, np.array([1.0, 1.0, 0, 1.0, 0])
    bounds = np.array([[-3, 3], [0, 1], [-1e9, 1e9], [-5, 9], [-1e9, 1e9]])
    peer = cmaes.CMAwM(es.center.numpy(), sigma, bounds, steps, population_size=8)
    peer._A[whole] = es.widths  # ours has its margin from the first generation on
    update = CMAES.update

    def recorded(self, told):
        update(self, told)
        peer._cma._mean = self.center.numpy().copy()
        peer._cma._sigma, peer._cma._C = self.step_size, self.covariance.copy()

    monkeypatch.setattr(CMAES, "update", recorded)
    monkeypatch.setattr(peer._cma, "tell", lambda solutions: None)
    for _ in range(30):
        members = es.ask().numpy()
        points = es.lattice.round(members)
        nearest = np.clip(np.rint(members[:, whole]), bounds[whole, 0], bounds[whole, 1])
        np.testing.assert_array_equal(points[:, whole], nearest)
        es.tell(values(points, fitness))
        peer.tell([])
        np.testing.assert_allclose(es.center.numpy()[whole], peer._cma._mean[whole], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(es.widths, peer._A[whole], rtol=1e-6)


def chances(es, scale=1.0):
    """Of each whole parameter, the share of members that have another number than most of them."""
    noise = np.random.default_rng(0).standard_normal((40_000, es.dimension))
    points = es.lattice.round((es.center.numpy() + es.scale * noise) * np.broadcast_to(scale, es.dimension))
    counts = [np.unique(points[:, place], return_counts=True)[1] for place in es.lattice.places]
    return np.array([1 - count.max() / len(noise) for count in counts])


@pytest.mark.parametrize("scale", [1.0, np.array([0.5, 2.0, 1.0, 4.0, 1.0])])
def test_another_whole_number_is_always_in_reach(scale):
    """However small the step size: each other number has half the margin at least, an end the whole."""
    es = searched(scale)
    for _ in range(200):
        es.tell(values(es.lattice.round(es.ask().numpy() * np.broadcast_to(scale, 5)), "plain"))
    assert es.scale[[2, 4]].max() < 1e-4  # of the others, which converge
    assert (chances(es, scale) >= 0.85 * es.margin).all()


def test_another_whole_number_is_in_reach_from_the_first_generation_on():
    """As the paper has it from the second: where all of the first are one point, there never is one."""
    es = searched(1.0, sigma=1e-6)
    assert (chances(es) >= 0.85 * es.margin).all()
    differ = 0
    for seed in range(100):
        es = searched(1.0, seed=seed, sigma=1e-6)
        differ += len(np.unique(es.lattice.round(es.ask().numpy())[:, es.lattice.places], axis=0)) > 1
    assert differ > 30  # each of 8 members has a chance of 3 / 40: 46 are to be expected


def test_a_search_whose_first_members_are_one_point_finds_another():
    def function(x):
        return float(((x - [7, 2]) ** 2).sum())

    found = escalade.optimize(function, [5, 5], integers=[0, 1], sigma=1e-6, target=0.0)
    assert found.best.tolist() == [7, 2]


def test_a_search_may_begin_half_way_between_the_only_two_numbers_and_begin_again():
    found = escalade.optimize(
        lambda x: float((x[0] - 1) ** 2 + abs(x[1]) + 3 * (1 - np.cos(2 * np.pi * x[1]))), [0.5, 3.0],
        bounds=[(0, 1), (-9, 9)], integers=[0], restarts="ipop", target=1e-7, budget=20_000,
    )  # fmt: skip
    assert found.stop_reason == "target"
    assert found.best[0] == 1


def test_a_state_goes_on_bit_for_bit():
    first, second = searched(1.0), searched(1.0)
    for _ in range(5):
        first.tell(values(first.lattice.round(first.ask().numpy()), "plain"))
    second.load_state_dict(first.state_dict())
    for _ in range(5):
        for es in (first, second):
            es.tell(values(es.lattice.round(es.ask().numpy()), "plain"))
    np.testing.assert_array_equal(first.center.numpy(), second.center.numpy())
    np.testing.assert_array_equal(first.widths, second.widths)


def test_optimize_finds_whole_numbers_where_rounding_alone_stops_short():
    target = np.array([3, -2, 7, 0, 1, 0.3, 0.3, 0.3])

    def function(x):
        assert (x[:5] == np.rint(x[:5])).all()
        assert (abs(x[:5]) <= 10).all()
        return float((10.0 ** (3 * np.arange(8) / 7) * (x - target) ** 2).sum())

    bounds = [(-10, 10)] * 5 + [(None, None)] * 3
    options = {"sigma": 2.0, "target": 1e-8, "budget": 20_000}
    for seed, integers in enumerate((range(5), np.arange(8) < 5)):
        found = escalade.optimize(
            function, np.zeros(8), bounds=bounds, integers=integers, seed=seed, **options
        )
        assert found.stop_reason == "target"
        np.testing.assert_array_equal(found.best[:5], target[:5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integers": [5]}, "there is no parameter 5, but those from 0 to 2"),
        ({"integers": [[0]]}, "must be numbers of parameters"),
        ({"integers": [0], "bounds": (0.2, 0.9)}, "parameter 0 leave fewer than two whole numbers"),
        ({"integers": [0], "strategy": "sep-cma-es"}, "integers is for strategy cma-es"),
    ],
)
def test_bad_integers_are_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        escalade.optimize(lambda x: float((x**2).sum()), np.full(3, 0.5), **options)
