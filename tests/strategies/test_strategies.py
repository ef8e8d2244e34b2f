"""Guarantees of every strategy: bit-identical resuming, zero steps, order, direction, clear errors."""

import copy
import json
import math
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from escalade.errors import InputError
from escalade.perturbation import DensePopulation, GaussianPopulation, NoiseTable
from escalade.perturbation.genomes import GenomePopulation
from escalade.strategies import (
    ARS,
    CEM,
    CMAES,
    CRFMNES,
    DES,
    LES,
    LMMAES,
    MAES,
    PGPE,
    RMES,
    SNES,
    VDCMA,
    XNES,
    CanonicalES,
    ClipUp,
    DeepGA,
    OpenAIES,
    SepCMAES,
    SimpleGaussian,
)
from escalade.strategies.schedules import SMALLEST_SIGMA, parse
from escalade.strategies.sized import SizedStrategy

TABLE = NoiseTable(4, 2**15)
SGD = partial(torch.optim.SGD, lr=0.05, momentum=0.9)

MAKERS = {
    "OpenAIES": OpenAIES,
    "OpenAIES momentum": partial(OpenAIES, optimizer=SGD, lr="cosine:0.1:0.01:8", weight_decay=0.01),
    "OpenAIES clipup": partial(OpenAIES, optimizer=partial(ClipUp, lr=0.1)),
    "ARS": partial(ARS, top_directions=3),
    "SimpleGaussian": SimpleGaussian,
    "CEM": partial(CEM, elite=0.3, noise="linear:0.001:0:8"),
    "DES": DES,
    "LES": LES,
    "SNES": SNES,
    "SNES mirrored": partial(SNES, mirrored=True, lr="step:1:0.5:4"),
    "PGPE": PGPE,
    "PGPE adam": partial(PGPE, optimizer=partial(torch.optim.Adam, lr=0.1), weight_decay=0.01),
    "SepCMAES": SepCMAES,
    "CMAES": CMAES,
    "XNES": XNES,
    "MAES": MAES,
    "LMMAES": LMMAES,
    "CRFMNES": CRFMNES,
    "RMES": RMES,
    "RMES of three paths": partial(RMES, paths=3),
    "VDCMA": VDCMA,
    "DeepGA": partial(DeepGA, parents=3, sigma="step:0.2:0.5:4"),
    "CanonicalES": partial(CanonicalES, parents=4),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
KINDS = ["OpenAIES momentum", "SNES mirrored", "CMAES", "DeepGA"]  # each with a different class of members
each_kind = pytest.mark.parametrize("make", [MAKERS[name] for name in KINDS], ids=KINDS)


def built(make, dimension=6, population=10, **keywords):
    x0 = np.linspace(-1, 1, dimension, dtype=np.float32)
    return make(x0, population, sigma=0.2, **({"seed": 7, "perturbation": TABLE} | keywords))


def sphere(members):
    return -(members.double() ** 2).sum(dim=1)


def step(strategy, count):
    for _ in range(count):
        strategy.tell(sphere(strategy.ask()))


def parts(strategy):
    """Return a copy of everything that determines the next generations."""
    return copy.deepcopy(strategy.state_dict())


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(second[name], value, rtol=0, atol=0, msg=name)
        else:
            assert second[name] == value, name


@every
def test_resumed_search_is_bit_identical(make):
    first = built(make)
    step(first, 5)
    state = first.state_dict()
    assert all(isinstance(value, torch.Tensor | int | float) for value in state.values())
    tensors = load(save({name: v.contiguous() for name, v in state.items() if isinstance(v, torch.Tensor)}))
    numbers = json.loads(
        json.dumps({name: v for name, v in state.items() if not isinstance(v, torch.Tensor)})
    )

    second = built(make)
    second.load_state_dict(tensors | numbers)
    step(first, 5)
    step(second, 5)
    assert_same(parts(first), parts(second))
    assert torch.equal(first.ask(), second.ask())
    assert first.sigma == second.sigma


@each_kind
def test_state_of_a_different_dimension_is_rejected(make):
    with pytest.raises(InputError, match="6 parameters"):
        built(make).load_state_dict(built(make, dimension=7).state_dict())
    with pytest.raises(InputError, match="the saved state has no "):
        built(make).load_state_dict({})


@pytest.mark.parametrize(
    ("saved", "loaded", "name"),
    [
        (CEM, XNES, "matrix"),
        (CEM, RMES, "ages"),
    ],
)
def test_state_of_a_different_strategy_is_rejected(saved, loaded, name):
    strategy = loaded(np.zeros(6), 20)
    with pytest.raises(InputError, match=f"state has no {name}"):
        strategy.load_state_dict(saved(np.ones(6), 20).state_dict())
    assert float(strategy.center.abs().sum()) == 0.0


@every
def test_search_depends_on_the_seed_and_is_reproducible(make):
    runs = [built(make, seed=seed) for seed in (1, 1, 2)]
    for run in runs:
        step(run, 4)
    assert torch.equal(runs[0].center, runs[1].center)
    assert not torch.equal(runs[0].center, runs[2].center)


@every
@pytest.mark.parametrize("value", [-7.25])
def test_all_equal_fitness_is_a_zero_step(make, value):
    strategy = built(make)
    step(strategy, 3)  # so that momentum and paths are not zero
    before = parts(strategy)
    strategy.sample()
    strategy.tell([value] * 10)
    after = parts(strategy)
    # The last three record fitness in Deep GA and LES even if the step is zero.
    for name in ("generation", "update_ratio", "history", "best", "best_fitness", "sums", "counts", "record"):
        before.pop(name, None), after.pop(name, None)
    assert strategy.update_ratio == 0.0
    assert_same(before, after)


@each_kind
def test_failed_members_count_as_the_worst(make):
    failed, worst = built(make), built(make)
    values = np.arange(10.0)
    values[[2, 5]] = values[1] = -3.0
    worst.sample(), failed.sample()
    worst.tell(values)
    values[[2, 5]] = np.nan, -np.inf
    failed.tell(values)
    assert failed.nonfinite == [2, 5]
    assert torch.equal(failed.center, worst.center)
    assert failed.sigma == worst.sigma
    failed.sample()
    failed.tell([math.nan] * 10)
    assert torch.equal(failed.center, worst.center)
    assert bool(torch.isfinite(failed.center).all())


@every
def test_minimizing_is_maximizing_the_negative(make):
    up, down = built(make), built(make, direction="minimize")
    for _ in range(5):
        values = sphere(up.ask()).numpy()
        down.sample()
        up.tell(values)
        down.tell(-values)
    assert torch.equal(up.center, down.center)


@every
def test_finds_the_top_of_a_sphere(make):
    strategy = built(make, population=40)
    before = float(strategy.center.norm())
    step(strategy, 150)
    assert float(strategy.center.norm()) < 0.25 * before


@each_kind
def test_lists_arrays_and_tensors_are_accepted(make):
    values = np.arange(10) % 4
    for x0 in (np.ones(6), torch.ones(6, dtype=torch.float16), [1.0] * 6):
        strategies = [make(x0, 10, sigma=0.2, perturbation=TABLE) for _ in range(3)]
        for strategy in strategies:
            strategy.sample()
        strategies[0].tell(values.tolist())
        strategies[1].tell(values.astype(np.float32))
        strategies[2].tell(torch.from_numpy(values))
        assert torch.equal(strategies[0].center, strategies[1].center)
        assert torch.equal(strategies[0].center, strategies[2].center)
        assert strategies[0].ask().shape == (10, 6)


@every
def test_populations_are_addresses_if_the_strategy_allows_it(make):
    strategy = built(make, dimension=1000, population=64)
    population = strategy.sample()
    if isinstance(strategy, SizedStrategy):
        assert isinstance(population, DensePopulation)
    else:
        assert isinstance(population, GaussianPopulation | GenomePopulation)
        assert len(pickle.dumps(population)) < 2 * 4 * 1000 + 2000


@each_kind
def test_tell_does_not_change_a_returned_population(make):
    strategy = built(make)
    population = strategy.sample()
    vector, again = np.empty(6, np.float32), np.empty(6, np.float32)
    population.write(3, vector)
    step(strategy, 2)
    population.write(3, again)
    np.testing.assert_array_equal(vector, again)


# --- the result -----------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_result_is_the_best_of_all_members(make, direction):
    strategy = built(make, direction=direction)
    assert math.isnan(strategy.result.best_fitness)
    assert strategy.result.history.shape == (0, 2)
    sign = 1 if direction == "maximize" else -1
    seen, means = [], []
    for _ in range(6):
        members = strategy.ask()
        values = sign * sphere(members).numpy()
        values[0] = np.nan
        strategy.tell(values)
        seen += [(sign * v, v, m) for v, m in zip(values[1:], members[1:], strict=True)]
        means.append(np.nanmean(values))
    _, value, member = max(seen, key=lambda item: item[0])
    result = strategy.result
    assert result.best_fitness == value
    assert torch.equal(result.best, member)
    assert torch.equal(result.center, strategy.center)
    assert result.history.shape == (6, 2)
    assert (sign * result.history[:, 0]).max() == sign * value
    assert (sign * (result.history[:, 0] - np.array(means)) >= 0).all()


@each_kind
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_member_with_unusable_fitness_is_never_the_best_and_not_in_the_mean(make, direction):
    strategy = built(make, direction=direction)
    members = strategy.ask()
    strange = [math.nan, math.inf, -math.inf, 1e40, -1e40, math.nan, 1e200, math.nan, -1e31]
    strategy.tell([*strange[:7], 5.0, *strange[7:]])  # all replaced by the only usable fitness
    assert strategy.result.best_fitness == 5.0
    assert torch.equal(strategy.result.best, members[7])
    assert strategy.result.history.tolist() == [[5.0, 5.0]]
    strategy.ask()
    strategy.tell([math.nan] * 3 + [4.0, 6.0] + [-math.inf] * 5)
    best = 6.0 if direction == "maximize" else 4.0
    assert strategy.result.history[1].tolist() == [best, 5.0]
    other = built(make, direction=direction)
    other.load_state_dict(strategy.state_dict())
    assert torch.equal(other.result.best, strategy.result.best)
    np.testing.assert_array_equal(other.result.history, strategy.result.history)
    strategy.ask()
    strategy.tell([math.nan] * 10)
    assert strategy.result.best_fitness == best
    assert np.isnan(strategy.result.history[2]).all()


# --- invalid input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [OpenAIES, ARS, PGPE, MAKERS["SNES mirrored"]])
def test_mirrored_strategies_reject_odd_populations(make):
    with pytest.raises(InputError, match="use 8"):
        make(np.zeros(3), 7)


@pytest.mark.parametrize("make", [SNES, SimpleGaussian, CEM, PGPE, SepCMAES])
@pytest.mark.parametrize(
    "sigma",
    [
        0.0,
        -1.0,
        math.nan,
        math.inf,
        "fast",
        "linear:1:0.1:10",
        lambda g: 0.1,
        [0.1, 0.2],
        [0.1, 0.1, 0.0],
        None,
    ],
)
def test_invalid_deviations_are_rejected(make, sigma):
    with pytest.raises(InputError, match="sigma"):
        make(np.zeros(3), 12, sigma)


@pytest.mark.parametrize("make", [SNES, SimpleGaussian, CEM, PGPE, SepCMAES])
def test_deviations_may_be_a_vector_or_text(make):
    assert make(np.zeros(3), 12, "0.5").sigma == 0.5
    strategy = make(np.zeros(3), 12, np.array([0.1, 0.2, 0.6]))
    assert strategy.sigma == pytest.approx(0.3)
    np.testing.assert_allclose(strategy.scale, [0.1, 0.2, 0.6], rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(CEM, elite=0.0), "elite 0.0"),
        (partial(CEM, elite=1.5), "elite 1.5"),
        (partial(SimpleGaussian, elite=0.1), "use elite 0.2 or more"),
        (partial(CEM, noise="slow"), "noise 'slow'"),
        (partial(SNES, shaping="best"), "`shaping` 'best'"),
        (partial(SNES, lr="0"), "lr '0'"),
        (partial(PGPE, shaping="best"), "`shaping` 'best'"),
        (partial(PGPE, weight_decay=-1.0), "weight_decay -1.0"),
        (partial(PGPE, max_change=1.0), "max_change 1.0"),
        (partial(PGPE, sigma_lr=-0.1), "sigma_lr -0.1"),
        (partial(CEM, sigma_lr=1.5), "sigma_lr 1.5 must be at most 1"),
        (partial(SimpleGaussian, sigma_lr="linear:3:1:9"), "sigma_lr 3 must be at most 1"),
        (partial(ARS, top_directions=6), "top_directions 6"),
        (partial(SNES, direction="up"), "direction 'up'"),
    ],
)
def test_invalid_settings_are_rejected_by_name(make, message):
    with pytest.raises(InputError, match=message):
        make(np.zeros(3), 10)


@pytest.mark.parametrize("make", [CMAES, SepCMAES])
def test_cma_es_has_a_default_population_and_rejects_a_tiny_one(make):
    assert make(np.zeros(10)).population_size == 10
    assert make(np.zeros(100)).population_size == 17
    with pytest.raises(InputError, match="at least 4"):
        make(np.zeros(3), 3)


def test_cma_es_rejects_very_high_dimensions_and_names_other_strategies():
    with pytest.raises(InputError, match=r"dimension 500000 needs .* use SepCMAES or SNES"):
        CMAES(np.zeros(500_000))


@each_kind
def test_fitness_of_the_wrong_shape_is_rejected(make):
    strategy = built(make)
    strategy.sample()
    for shape in (9, (10, 1)):
        with pytest.raises(InputError, match=r"\(10,\)"):
            strategy.tell(np.zeros(shape))
    with pytest.raises(InputError, match="one number"):
        strategy.tell(["a"] * 10)
    strategy.tell(np.arange(10.0))  # the generation can still be completed after the error


@pytest.mark.parametrize("make", [ARS, OpenAIES])
def test_noise_scale_never_becomes_zero(make):
    strategy = make(np.zeros(5), population=4, sigma="exponential:0.1:0.001", perturbation=TABLE)
    strategy.generation = 10_000
    assert strategy.sigma == SMALLEST_SIGMA
    strategy.sample()
    strategy.tell([1.0, 2.0, 3.0, 4.0])
    assert torch.isfinite(strategy.center).all()
    for text in ("linear:0.1:0:5", "cosine:0.1:0:5", "exponential:0.1:0", "step:0.1:0:5"):
        with pytest.raises(InputError, match="ends at 0"):
            make(np.zeros(5), population=4, sigma=text)


@each_kind
def test_tell_is_accepted_once_and_only_after_ask(make):
    strategy = built(make)
    for _ in range(2):
        with pytest.raises(InputError, match=r"call ask\(\) .or sample\(\)."):
            strategy.tell(np.arange(10.0))
        assert strategy.generation == 0
    strategy.ask()
    strategy.tell(np.arange(10.0))
    before = parts(strategy)
    with pytest.raises(InputError, match=r"tell\(\) without members"):
        strategy.tell(np.arange(10.0))
    assert_same(before, parts(strategy))
    strategy.sample()
    strategy.load_state_dict(before)
    with pytest.raises(InputError, match=r"tell\(\) without members"):
        strategy.tell(np.arange(10.0))


@pytest.mark.parametrize(
    "fitness",
    [[None] * 4, ["1", "2", "3", "4"], [1j] * 4, torch.zeros(4, dtype=torch.complex64), [10**400] * 4],
)
def test_non_numeric_fitness_is_rejected(fitness):
    strategy = OpenAIES(np.zeros(3), population=4)
    strategy.ask()
    with pytest.raises(InputError, match="fitness must hold one number per member"):
        strategy.tell(fitness)
    strategy.tell([torch.tensor(1.0), 2, np.float16(3), True])
    assert strategy.generation == 1


@pytest.mark.parametrize("make", [OpenAIES, ARS, PGPE, SNES])
@pytest.mark.parametrize("size", [4, 20])
def test_resized_generation_uses_all_members(make, size):
    strategy = built(make)
    members = strategy.ask()
    strategy.resize(size)
    shared = min(size, len(members))
    assert torch.equal(strategy.ask()[:shared], members[:shared])
    strategy.tell(np.arange(float(size)))
    assert strategy.generation == 1
    assert strategy.population_size == 10


@pytest.mark.parametrize("make", [CMAES, SepCMAES, CEM, SimpleGaussian])
def test_strategy_with_a_fixed_population_rejects_resize(make):
    strategy = built(make)
    strategy.resize(10)
    with pytest.raises(InputError, match=f"{make.__name__} needs the same population in every"):
        strategy.resize(12)
    assert strategy.population_size == 10


@pytest.mark.parametrize(("first", "kept"), [(8, 1), (64, 8)])
def test_ars_keeps_the_same_share_of_directions_after_resize(first, kept):
    resized, large = (
        ARS(np.zeros(3), size, 0.1, lr=0.1, top_directions=top) for size, top in ((first, kept), (16, 2))
    )
    for strategy in (resized, large):
        strategy.ask()
    resized.resize(16)
    fitness = np.arange(16.0)[::-1]
    for strategy in (resized, large):
        strategy.ask()
        strategy.tell(fitness)
    assert torch.equal(resized.center, large.center)


@each_kind
@pytest.mark.parametrize("seed", [1.7, "1", -1, 2**63])
def test_seed_that_is_not_an_integer_is_rejected(make, seed):
    with pytest.raises(InputError, match="seed"):
        built(make, seed=seed)
    assert built(make, seed=np.int64(3)).seed == 3


@pytest.mark.parametrize("bad", [math.nan, -0.1, "fast"])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (OpenAIES, "lr"), (ARS, "lr"), (PGPE, "lr"), (SNES, "lr"), (CEM, "lr"), (SimpleGaussian, "lr"),
        (OpenAIES, "sigma"), (ARS, "sigma"), (SNES, "sigma_lr"), (PGPE, "sigma_lr"), (CEM, "noise"),
        (XNES, "lr"), (XNES, "sigma_lr"), (XNES, "shape_lr"),
    ],
)  # fmt: skip
def test_invalid_schedule_value_names_the_generation(make, name, bad):
    strategy = make(
        np.zeros(3), 10, perturbation=TABLE, **{name: lambda generation: 0.1 if generation < 2 else bad}
    )
    step(strategy, 2)
    before = parts(strategy)
    with pytest.raises(InputError, match=rf"{name} is .* in generation 3 \(called with 2\)"):
        step(strategy, 1)
    assert_same(before, parts(strategy))


@pytest.mark.parametrize(
    "x0",
    [np.array([1j, 2.0]), torch.ones(3, dtype=torch.complex64), torch.ones(3, device="meta"), [10**400, 1]],
)
def test_x0_must_hold_real_numbers(x0):
    with pytest.raises(InputError, match="x0 must be a vector of numbers"):
        OpenAIES(x0, 4)


@pytest.mark.parametrize("make", [SimpleGaussian, CEM, DES])
@pytest.mark.parametrize("rate", ["linear:0.5:3:4", lambda generation: 0.5 + 0.25 * generation])
def test_sigma_lr_schedule_above_one_is_rejected_in_that_generation(make, rate):
    strategy = make(np.zeros(3), 10, sigma_lr=rate, perturbation=TABLE)
    while strategy.generation < 4 and (rate if callable(rate) else parse(rate))(strategy.generation) <= 1:
        step(strategy, 1)
    before = parts(strategy)
    with pytest.raises(InputError, match=rf"sigma_lr .* in generation {strategy.generation + 1} must be at"):
        step(strategy, 1)
    assert_same(before, parts(strategy))


def test_step_size_grows_by_at_most_e_per_generation():
    """The rule exp(c / 2 * (length² / n - 1)) diverges with many members and few parameters."""
    for es in (CanonicalES(np.zeros(1), 4000, 0.1), LMMAES(np.zeros(2), 4000, 0.1)):
        for generation in range(1, 4):
            es.tell(es.ask()[:, 0])
            assert 0.1 < es.sigma <= 0.1 * math.e**generation * (1 + 1e-9)


def test_lm_ma_es_direction_count_matches_the_paper_for_large_populations():
    es = LMMAES(np.zeros(2000), 600)
    es.tell(-(es.ask() ** 2).sum(dim=1))
    assert es.directions.shape == (4 + int(3 * math.log(2000)), 2000)
    assert LMMAES(np.zeros(2000), 8).directions.shape == (8, 2000)


def test_load_state_dict_restores_the_original_population_size():
    es = OpenAIES(np.zeros(3), 10, perturbation=TABLE)
    saved = es.state_dict()
    es.resize(40)
    es.load_state_dict(saved)
    assert len(es.ask()) == 10


def test_small_constant_sigma_is_kept_but_a_small_scheduled_sigma_is_raised():
    assert OpenAIES(np.zeros(3), sigma=1e-12).sigma == 1e-12
    assert ARS(np.zeros(3), sigma="1e-12").sigma == 1e-12
    assert OpenAIES(np.zeros(3), sigma=lambda generation: 1e-12).sigma == SMALLEST_SIGMA


@pytest.mark.parametrize("make", [OpenAIES, ARS, SNES])
def test_learning_rate_schedule_may_end_at_zero(make):
    centers = []
    for lr in ("cosine:0.1:0:3", lambda generation: max(0.0, 0.1 - generation / 10)):
        es = make(np.ones(3), 10, lr=lr, perturbation=TABLE)
        for _ in range(5):
            step(es, 1)
        centers.append(es.center)
    assert all(bool(center.isfinite().all()) for center in centers)


@pytest.mark.parametrize("make", [SNES, XNES])
def test_overflowing_sigma_is_rejected(make):
    es = make(np.zeros(3), 10, sigma_lr=1e4)

    def generations():
        for _ in range(3):
            es.tell((es.ask() ** 2).sum(1))

    with pytest.raises(InputError, match=r"generation \d takes sigma beyond the largest number"):
        generations()


def test_tensors_that_require_grad_are_accepted():
    x0 = torch.zeros(3, requires_grad=True)
    assert SNES(x0, 8, sigma=torch.full((3,), 0.5, requires_grad=True)).sigma == pytest.approx(0.5)
    assert CMAES(x0, 8, covariance=torch.eye(3, requires_grad=True)).sigma == pytest.approx(0.5)
