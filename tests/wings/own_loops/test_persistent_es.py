"""Persistent ES and noise-reuse ES compared with their papers and the true gradient."""

import pickle

import numpy as np
import pytest
from tests.examples import load

from escalade import InputError
from escalade.perturbation import NoiseTable
from escalade.strategies import OpenAIES, PersistentES

TABLE = NoiseTable(2, 2**15)


def noise(generation, number, dimension, seed=5):
    out = np.empty(dimension)
    TABLE.draw(seed, generation, number + 1, dimension).write(number, 1.0, out)
    return out


@pytest.mark.parametrize("fitness", ["plain", "offset", "tied"])
@pytest.mark.parametrize(("windows", "hold"), [(1, 1), (4, 1), (6, 2), (4, 4)])
def test_the_step_matches_the_papers(windows, hold, fitness):
    """Sums the noise of each pair's unroll explicitly."""
    dimension, population, sigma, lr = 7, 10, 0.2, 0.1
    start = np.linspace(-1, 1, dimension)
    es = PersistentES(
        start, population, sigma, windows=windows, hold=hold, optimizer="sgd", momentum=0.0, lr=lr,
        seed=5, perturbation=TABLE,
    )  # fmt: skip
    center, ages = start.copy(), np.arange(5) * windows // 5
    held, sums = [None] * 5, np.zeros((5, dimension))
    for generation in range(3 * windows + 2):
        fresh = (ages % windows == 0) | (generation == 0)
        np.testing.assert_array_equal(es.fresh, np.repeat(fresh, 2))
        for k in range(5):
            if fresh[k]:
                sums[k] = 0
                held[k] = [None, 0]
            if held[k][1] % hold == 0:
                held[k][0] = noise(generation, k, dimension)
                sums[k] += held[k][0]
            held[k][1] += 1
        expected = np.repeat([center + sigma * own for own, _ in held], 2, axis=0)
        expected[1::2] = [center - sigma * own for own, _ in held]
        members = es.ask().numpy()
        np.testing.assert_allclose(members, expected, rtol=1e-12, atol=1e-12)
        values = -((members - 0.3) ** 2).sum(axis=1) * (1 + generation % 3)
        values = {"plain": values, "offset": values + 1e6, "tied": np.round(values / values.std())}[fitness]
        es.tell(values)
        center = center + lr * (values[0::2] - values[1::2]) @ sums / (population * sigma)
        np.testing.assert_allclose(es.center.numpy(), center, rtol=1e-6, atol=1e-9)
        ages = ages + 1


def window(states, theta):
    """Influence balancing (Tallec and Ollivier 2017): the effect of theta on the first state is delayed."""
    n, helps = 23, 10
    matrix = 0.5 * np.eye(n) + 0.5 * np.eye(n, k=1)
    states = states @ matrix.T + theta[:, None] * np.where(np.arange(n) < helps, -1.0, 1.0)
    return states, 0.5 * (states[:, 0] - 1) ** 2


def whole(theta, windows):
    """Return the mean loss of an unroll."""
    states, losses = np.ones((1, 23)), []
    for _ in range(windows):
        states, loss = window(states, np.array([theta]))
        losses.append(loss.item())
    return np.mean(losses)


def mean_gradient(es, generations, lr):
    """Return the mean over ``generations``, after two unrolls that spread the members' starts."""
    states = np.ones((es.population_size, 23))
    for generation in range(100 + generations):
        if generation == 100:
            start = float(es.center[0])
        if isinstance(es, PersistentES):
            states[es.fresh] = 1.0
        states, losses = window(states, es.ask().numpy()[:, 0])
        es.tell(losses)
    return (start - float(es.center[0])) / (generations * lr)


@pytest.mark.slow(
    "src/escalade/wings/own_loops/persistent_es.py", "tests/wings/own_loops/test_persistent_es.py"
)
@pytest.mark.parametrize("hold", [1, 50])
def test_the_gradient_includes_effects_beyond_the_window(hold):
    start, lr = np.array([0.02]), 1e-12  # the center does not move
    options = {"population": 400, "sigma": 0.02, "optimizer": "sgd", "momentum": 0.0, "lr": lr}
    options |= {"direction": "minimize", "seed": 3}
    truth = (whole(0.02 + 1e-5, 50) - whole(0.02 - 1e-5, 50)) / 2e-5
    persistent = mean_gradient(PersistentES(start, windows=50, hold=hold, **options), 100, lr)
    truncated = mean_gradient(OpenAIES(start, shaping="raw", **options), 100, lr)
    assert persistent == pytest.approx(truth, rel=0.1)
    assert truncated < 0.6 * truth  # it misses effects after the window


def test_a_restored_state_continues_identically():
    def made():
        return PersistentES(np.zeros(5), 12, 0.1, windows=6, hold=2, seed=1, perturbation=TABLE)

    def steps(es, count):
        for _ in range(count):
            es.tell(-((es.ask().numpy() - 1) ** 2).sum(axis=1))

    first, second = made(), made()
    steps(first, 8)
    second.load_state_dict(first.state_dict())
    for es in (first, second):
        steps(es, 8)
    np.testing.assert_array_equal(first.center.numpy(), second.center.numpy())


@pytest.mark.slow("examples")
def test_the_example_reaches_the_result_of_full_unrolls():
    example = load("truncated_unrolls")
    found = {
        method: example.unroll(example.tune(method, 600)[None], *example.begin(1), example.STEPS)[0][0]
        for method in ("persistent", "noise-reuse", "truncated", "whole")
    }
    assert max(found["persistent"], found["noise-reuse"]) < found["whole"] + 1
    assert found["truncated"] > found["whole"] + 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": 0}, "windows 0 must be at least 1"),
        ({"windows": 6, "hold": 4}, "hold 4 must divide windows, 6"),
        ({"windows": 6, "population": 7}, "population 7 is odd"),
    ],
)
def test_impossible_arguments_are_refused_by_name(options, message):
    with pytest.raises(InputError, match=message):
        PersistentES(np.zeros(3), **options)


def test_a_population_is_pickled_without_the_noise_table():
    es = PersistentES(np.zeros(10), population=6, sigma=0.1, windows=5, perturbation=NoiseTable(3, 2**16))
    population = es.sample()
    sent = pickle.dumps(population)
    assert len(sent) < 2000
    there = pickle.loads(sent)
    for member in range(6):
        here, far = np.empty(10, np.float32), np.empty(10, np.float32)
        population.write(member, here)
        there.write(member, far)
        assert here.tobytes() == far.tobytes()
