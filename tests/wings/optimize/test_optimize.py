"""optimize: results, stopping, arguments of the function, and refusals."""

import math
import os
import random
from functools import partial

import numpy as np
import pytest
import torch
from tests.recording import Recording

import escalade
from escalade.errors import EnvironmentFailure, InputError
from escalade.perturbation import NoiseTable
from escalade.strategies import CMAES, SNES, DeepGA, GuidedES, OpenAIES
from escalade.strategies.registry import STRATEGIES

TABLE = NoiseTable(3, 2**12)


def sphere(x):
    return ((x - 3) ** 2).sum(-1)


def rastrigin(x):
    return (x**2 + 10 - 10 * np.cos(2 * math.pi * x)).sum(-1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_finds_a_minimum_on_a_bound_and_stays_within(strategy):
    seen = []

    def function(points):
        seen.append(points.copy())
        return ((points - [2.0, 5.0, -1.0]) ** 2).sum(axis=1)

    made = {
        "openai-es": partial(OpenAIES, lr=0.05),
        "ars": partial(STRATEGIES["ars"].load(), lr=0.05),
        "pgpe": partial(STRATEGIES["pgpe"].load(), lr=0.05),
        "deep-ga": lambda x0, sigma, **more: DeepGA(x0, sigma=f"exponential:{sigma}:0.99", **more),
        "cem": partial(STRATEGIES["cem"].load(), elite=0.5, noise="linear:0.1:0:200"),
    }
    population = 8 if strategy == "lm-ma-es" else 40  # meant for more dimensions than members
    found = escalade.optimize(
        function, np.zeros(3), made.get(strategy, strategy), bounds=(-3, [4, 4, 4]), sigma=0.2,
        population=population,
        budget=12_000, vectorized=True,
    )  # fmt: skip
    points = np.concatenate(seen)
    assert points.dtype == np.float64
    assert (points >= -3).all()
    assert (points <= 4).all()
    np.testing.assert_allclose(found.best, [2, 4, -1], atol=0.03)
    assert found.best_fitness == pytest.approx(1.0, abs=0.03)
    assert found.evaluations == len(points)
    assert found.history.shape == (len(seen), 2)


def test_the_best_is_the_best_point_ever_evaluated():
    seen = []

    def function(x):
        seen.append((float(sphere(x)), x.copy()))
        x[:] = np.nan  # the function may change its point
        return seen[-1][0]

    found = escalade.optimize(function, [0.0, 0.0], budget=300)
    value, point = min(seen, key=lambda item: item[0])
    assert found.best_fitness == value
    assert np.array_equal(found.best, point)
    assert (found.stop_reason, found.evaluations, found.restarts) == ("budget", len(seen), 0)
    assert found.history[:, 0].min() == value


def test_a_seed_determines_the_search_vectorized_or_not_and_under_negation():
    first = escalade.optimize(sphere, np.zeros(4), seed=3)
    for function, options in (
        (sphere, {"vectorized": True}),
        (lambda x: -sphere(x), {"direction": "maximize"}),
    ):
        second = escalade.optimize(function, np.zeros(4), seed=3, **options)
        assert np.array_equal(first.best, second.best)
        assert np.array_equal(first.history, abs(second.history))
    assert not np.array_equal(first.best, escalade.optimize(sphere, np.zeros(4), seed=4).best)


def test_the_result_has_the_type_of_x0():
    found = escalade.optimize(sphere, np.zeros(3, np.float32))
    assert isinstance(found.best, np.ndarray)
    assert found.best.dtype == np.float64
    assert found.best_fitness < 1e-9

    def of_tensors(x):
        assert x.dtype == torch.float64
        return ((x - 3) ** 2).sum()

    again = escalade.optimize(of_tensors, torch.zeros(3))
    assert isinstance(again.best, torch.Tensor)
    np.testing.assert_array_equal(again.best.numpy(), found.best)


@pytest.mark.parametrize(
    ("options", "function", "reason"),
    [
        ({"target": 1e-3}, sphere, "target"),
        ({"budget": 100}, sphere, "budget"),
        ({}, sphere, "tolfun"),
        ({}, lambda x: 1e16 * sphere(x), "tolx"),
        ({"sigma": 1e-6}, lambda x: -x[0], "tolxup"),
    ],
)
def test_the_stop_reason_is_reported(options, function, reason):
    found = escalade.optimize(function, np.zeros(3), **options)
    assert found.stop_reason == reason


@pytest.mark.parametrize("restarts", ["ipop", "bipop"])
def test_restarts_get_out_of_local_minima(restarts):
    options = {"sigma": 0.5, "target": 1e-8, "vectorized": True, "seed": 1, "tolerance": 1e-4}
    once = escalade.optimize(rastrigin, np.full(2, 3.0), **options)
    again = escalade.optimize(
        rastrigin, np.full(2, 3.0), bounds=(-5, 5), restarts=restarts, budget=60_000, **options
    )
    assert once.best_fitness > 0.9
    assert once.restarts == 0
    assert (again.stop_reason, again.restarts > 0) == ("target", True)
    assert again.best_fitness <= 1e-8


def test_a_callable_x0_starts_every_search_at_a_new_point():
    starts = []

    def start(rng):
        starts.append(rng.uniform(-5, 5, 3))
        return starts[-1]

    found = escalade.optimize(
        rastrigin, start, restarts="bipop", budget=2_000, tolerance=1e-2, vectorized=True
    )
    assert found.stop_reason == "budget"
    assert 2_000 <= found.evaluations < 2_200
    assert len(starts) == found.restarts + 1 > 2
    assert len({tuple(point) for point in starts}) == len(starts)


def test_ctrl_c_keeps_the_best_point():
    calls = []

    def function(points):
        calls.append(points)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return sphere(points)

    found = escalade.optimize(function, np.zeros(3), vectorized=True, restarts="ipop")
    assert (found.stop_reason, len(found.history)) == ("interrupted", 4)
    assert found.best_fitness == min(sphere(points).min() for points in calls[:4])

    def at_once(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        escalade.optimize(at_once, np.zeros(3))


def test_sigma_can_differ_between_parameters():
    scales = np.array([1.0, 1e3, 1e-3])

    def function(x):
        return (((x - scales) / scales) ** 2).sum()

    fitting = escalade.optimize(function, np.zeros(3), sigma=0.3 * scales, target=1e-8)
    equal = escalade.optimize(function, np.zeros(3), sigma=0.3, target=1e-8)
    assert fitting.evaluations < 0.5 * equal.evaluations


def noisy(x):
    if random.random() < 0.2:
        raise ValueError(f"no luck at {x[0]}")
    return float(((x - 3) ** 2).sum()) + np.random.normal() + float(torch.randn(()))


def test_workers_give_identical_results_even_if_the_function_draws_or_fails():
    options = {"budget": 60, "catch": ValueError, "seed": 2}
    drawn, torchs = np.random.get_state()[1].copy(), torch.get_rng_state()
    results = [escalade.optimize(noisy, np.zeros(3), workers=workers, **options) for workers in (0, 2)]
    np.testing.assert_array_equal(np.random.get_state()[1], drawn)
    assert torch.equal(torch.get_rng_state(), torchs)
    assert 0 < results[0].failures < 30
    np.testing.assert_array_equal(results[1].history, results[0].history)
    np.testing.assert_array_equal(results[1].best, results[0].best)
    np.testing.assert_array_equal(results[1].center, results[0].center)
    assert results[1].failures == results[0].failures


def test_a_callback_uses_the_callers_random_state():
    expected, drawn = np.random.RandomState(5).normal(size=4), []
    np.random.seed(5)
    escalade.optimize(
        noisy, np.zeros(3), budget=28, catch=True, callback=lambda found: drawn.append(np.random.normal())
    )
    np.testing.assert_array_equal(drawn, expected)


@pytest.mark.parametrize("strategy", ["cma-es", "cr-fm-nes", "snes", "openai-es"])
def test_a_small_search_allocates_no_noise_table(strategy, monkeypatch):
    tables = []
    monkeypatch.setattr("escalade.perturbation.fresh.NoiseTable", lambda *size: tables.append(size) or TABLE)
    for dimension in (2, 256, 257):
        escalade.optimize(sphere, np.zeros(dimension), strategy, budget=12)
        assert len(tables) == (dimension == 257)
    escalade.optimize_batch(lambda x, number: sphere(x), np.zeros((3, 257)), strategy, budget=12)
    assert len(tables) == 2


def test_workers_are_separate_processes_and_pass_tensors_to_the_function():
    def where(x):
        assert isinstance(x, torch.Tensor)
        return (x**2).sum() + os.getpid()

    found = escalade.optimize(where, torch.ones(2), workers=1, budget=6)
    assert found.best_fitness - (found.best**2).sum() != pytest.approx(os.getpid())
    assert isinstance(found.center, torch.Tensor)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_uncaught_exception_names_the_point(workers):
    def function(x):
        raise OSError(f"the simulator is gone\n{'x' * 10_000}")

    message = (
        r"point 0, generation 1: the function raised OSError: the simulator is gone x+\.\.\. \(line \d+ of"
    )
    with pytest.raises(EnvironmentFailure, match=message) as raised:
        escalade.optimize(function, np.zeros(2), catch=(ValueError, KeyError), workers=workers)
    assert len(str(raised.value)) < 400
    assert workers or isinstance(raised.value.__cause__, OSError)


def test_a_caught_exception_counts_as_the_worst_like_nan():
    def failing(x):
        return sphere(x) if x[0] >= 2.5 else 1 / 0

    def missing(x):
        return sphere(x) if x[0] >= 2.5 else math.nan

    found = escalade.optimize(failing, np.full(3, 2.6), seed=1, catch=ZeroDivisionError)
    same = escalade.optimize(missing, np.full(3, 2.6), seed=1)
    np.testing.assert_array_equal(found.history, same.history)
    assert found.best_fitness < 1e-8
    assert found.failures > 0 == same.failures


def test_a_function_that_raises_everywhere_is_reported():
    def function(x):
        raise NameError("wieght")

    with pytest.raises(EnvironmentFailure, match=r"NameError: wieght .* at all 7 points"):
        escalade.optimize(function, np.zeros(3), catch=True)


def test_a_callback_sees_each_generation_and_may_stop_the_search():
    seen = []

    def watch(found):
        seen.append(found)
        copy = (found.best.copy(), found.center.copy())
        found.best[:], found.center[:] = np.nan, np.nan  # the callback may change them
        assert np.isfinite(copy).all()
        return np.bool_(len(seen) == 4)

    found = escalade.optimize(sphere, np.zeros(3), callback=watch)
    assert found.stop_reason == "callback"
    assert [one.evaluations for one in seen] == [7, 14, 21, 28]
    assert [len(one.history) for one in seen] == [1, 2, 3, 4]
    assert {one.stop_reason for one in seen} == {""}
    alone = escalade.optimize(sphere, np.zeros(3), budget=28)
    np.testing.assert_array_equal(found.best, alone.best)
    np.testing.assert_array_equal(found.center, alone.center)


def test_the_center_belongs_to_the_best_search_and_is_within_the_bounds():
    rng = np.random.default_rng(0)

    def function(x):
        return sphere(x) + rng.normal()

    found = escalade.optimize(function, np.zeros(3), bounds=(-4, 4), budget=600, seed=6)
    assert sphere(found.center) < sphere(found.best)
    ends = []
    again = escalade.optimize(
        rastrigin, np.full(3, 3.0), bounds=(-5, 5), restarts="ipop", budget=3_000, tolerance=1e-3,
        callback=ends.append, seed=4,
    )  # fmt: skip
    last_of_the_best = [one for one in ends if one.restarts == best_search(ends)][-1]
    assert again.restarts > last_of_the_best.restarts
    np.testing.assert_array_equal(again.center, last_of_the_best.center)


def best_search(ends):
    return next(one.restarts for one in ends if one.best_fitness == ends[-1].best_fitness)


def test_the_time_limit_ends_the_search_after_or_inside_a_generation(monkeypatch):
    now, calls = [100.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def function(x):
        now[0] += step
        calls.append(x)
        return sphere(x)

    step = 0.5
    found = escalade.optimize(function, np.zeros(3), seconds=10)
    assert (found.stop_reason, found.evaluations) == ("seconds", 21)

    def sticks(x):
        now[0] += 1000.0 if len(calls) == 23 else 0.0
        return function(x)

    calls.clear()
    found = escalade.optimize(sticks, np.zeros(3), seconds=100)
    assert (found.stop_reason, found.evaluations, len(calls)) == ("seconds", 21, 24)

    step = 1000.0
    with pytest.raises(InputError, match="time limit of 1 s was reached in the first generation"):
        escalade.optimize(function, np.zeros(3), seconds=1)


def test_recorders_receive_rows_and_notes(capsys):
    recorder = Recording()
    found = escalade.optimize(
        noisy, np.zeros(3), recorders=[recorder], budget=42, catch=True, restarts="ipop", tolerance=2.0
    )
    rows = recorder.rows
    assert recorder.closed == 1
    assert [row.generation for row in rows] == list(range(1, len(found.history) + 1))
    assert [row.return_min for row in rows] == found.history[:, 0].tolist()
    assert rows[-1].episodes == found.evaluations
    assert sum(row.nonfinite for row in rows) == found.failures > 0
    assert rows[0].sigma == 0.5
    assert any("raised ValueError: no luck" in note for note in recorder.notes)
    assert found.restarts > 0
    assert any("search 2, population 14" in note for note in recorder.notes)
    assert capsys.readouterr().out == ""


def test_verbose_prints_the_problem_and_progress(capsys):
    escalade.optimize(sphere, np.zeros(3), budget=21, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "sphere: cma-es, 3 parameters, in this process"
    assert lines[-1].startswith("generation 3")
    assert "(min " in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": -1}, "workers -1 must be at least 0"),
        ({"workers": 2, "vectorized": True}, "workers=2 has no effect"),
        ({"catch": "all"}, "catch 'all' must be True or exception types"),
        ({"recorders": ["csv"]}, "run folder"),
        ({"seconds": 0}, "seconds 0 must be above 0"),
        ({"callback": 3}, "callback must be a function of the result so far, not 3"),
        ({"function": [1.0, 2.0], "x0": sphere}, "the first argument, before x0, must be a function"),
        ({"x0": "far"}, "x0 must be numbers"),
        ({"x0": np.zeros((2, 2))}, r"x0 .* shape \(2, 2\)"),
        ({"x0": [math.nan]}, "x0"),
        ({"strategy": "cmaes"}, "did you mean cma-es"),
        ({"direction": "down"}, "direction 'down'"),
        ({"sigma": 0.0}, "sigma 0.0"),
        ({"sigma": [1.0, 2.0]}, "sigma .* 3 of them"),
        ({"population": 2}, "population 2"),
        ({"bounds": (1, 0)}, "parameter 0 has 1 and 0"),
        ({"bounds": (1, 2)}, "x0: parameter 0 is 0, outside its bounds 1 and 2"),
        ({"budget": 0}, "budget 0"),
        ({"target": math.nan}, "target"),
        ({"tolerance": -1.0}, "tolerance -1.0"),
        ({"restarts": "ipops"}, "did you mean ipop"),
        ({"restarts": "ipop", "strategy": "snes"}, "cma-es or ma-es or sep-cma-es or xnes"),
        ({"seed": 1.7}, "seed 1.7"),
        ({"function": lambda x: x}, "one number per point"),
        ({"function": lambda x: "low"}, "one number per point, not 'low'"),
        ({"function": lambda x: x[:2], "vectorized": True}, r"shape \(2, 3\) for 7 points"),
        ({"function": lambda x: math.nan}, "no finite number"),
        ({"strategy": lambda x0, sigma: CMAES(x0)}, "<lambda> takes no direction; make it accept direction="),
        ({"strategy": lambda x0, far, **options: CMAES(x0)}, "<lambda> needs far; fix it"),
        ({"strategy": partial(CMAES, sigma=3.0)}, "`sigma` is fixed in the strategy"),
        ({"strategy": SNES, "x0": escalade.EarlierPoints([[1.0]], [3.0])}, "needs strategy cma-es"),
        ({"strategy": lambda *given, **options: None}, "returned a NoneType, not an escalade Strategy"),
    ],
)
def test_impossible_arguments_are_named_in_one_line(arguments, message):
    arguments = {"function": sphere, "x0": np.zeros(3), "budget": 100} | arguments
    with pytest.raises(InputError, match=message):
        escalade.optimize(arguments.pop("function"), arguments.pop("x0"), **arguments)


def test_a_built_in_strategy_class_equals_its_name():
    options = {"restarts": "ipop", "budget": 200, "seed": 3}
    by_name = escalade.optimize(sphere, np.zeros(3), "cma-es", **options)
    by_class = escalade.optimize(sphere, np.zeros(3), CMAES, **options)
    assert np.array_equal(by_name.best, by_class.best)
    assert escalade.optimize(sphere, np.zeros(3), CMAES, integers=[0], budget=50).best[0] % 1 == 0


def test_a_subclass_may_fix_required_arguments_of_its_base():
    class Guided(GuidedES):
        def __init__(self, x0, population=20, sigma=0.1, **more):
            super().__init__(x0, population, sigma, surrogate=lambda x: 2 * (x - 3), **more)

    class Same(Guided):
        pass

    for kind in (Guided, Same, partial(Guided, guides=2)):
        assert escalade.optimize(sphere, np.ones(3), kind, budget=40).evaluations == 40


def test_a_strategy_without_a_default_population_gets_the_usual_one():
    def plain(x0, population, **options):
        return CMAES(x0, population, **options)

    found = escalade.optimize(sphere, np.ones(3), plain, budget=20)
    assert found.evaluations == 3 * (4 + 3)  # 4 + 3 ln(3) members per generation


def exhausted(*arguments):
    return next(iter(()))


def test_a_callback_can_stop_the_search_with_stopiteration():
    found = escalade.optimize(lambda x: float((x**2).sum()), np.ones(3), budget=1000, callback=exhausted)
    assert (found.stop_reason, len(found.history)) == ("callback", 1)
    assert found.best_fitness < 3


class Exhausted:
    """A recorder that raises StopIteration."""

    generation = note = exhausted

    def close(self):
        pass


@pytest.mark.parametrize("options", [{"recorders": [Exhausted()]}, {"x0": exhausted}])
def test_stopiteration_raised_elsewhere_is_propagated(options):
    with pytest.raises(StopIteration):
        escalade.optimize(lambda x: float((x**2).sum()), **({"x0": np.ones(3), "budget": 50} | options))
