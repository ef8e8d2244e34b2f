"""Noise generated on a device: exact values, statistics, sums, and no transfer to the CPU."""

import math

import numpy as np
import pytest
import torch
from tests.devices import PLACE
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from escalade.errors import InputError
from escalade.perturbation import address, hash64, write_all
from escalade.perturbation import device as device_module
from escalade.perturbation.device import Counters, DeviceNoise, DevicePopulation, as_device, hashed
from escalade.perturbation.factors import member_of, members_of
from escalade.strategies import ARS, OpenAIES

SHAPES = ((20, 30), (30,), (8, 4, 3, 3), (1, 50), (5, 2), (), (0, 4), (12, 12), (3,))
SIZE = 20 * 30 + 30 + 8 * 36 + 50 + 10 + 1 + 0 + 144 + 3
COUNT = 9


def source(rank, device=PLACE, shapes=SHAPES):
    return DeviceNoise(Counters(device), rank, shapes)


def numbers(length, *, seed=7, generation=3, count=2, number=0):
    out = torch.full((1, length), math.nan, device=PLACE)
    Counters(PLACE).draw(seed, generation, count, length).write_rows([number], out)
    return out[0].cpu()


def written(draws):
    noise = torch.full((COUNT, SIZE), math.nan, device=PLACE)
    for number, row in enumerate(noise):
        draws.write(number, 1.0, row)
    return noise.cpu()


# Exact values


def test_hash_equals_that_of_addresses():
    places = torch.cat([torch.arange(2000), torch.randint(0, 2**40, (2000,))])
    for state in (0, 1, -1, 2**63 - 1, -(2**63), int(hash64(1, 2, 3).view(np.int64))):
        # The last word of a hash; the earlier words make up the state.
        expected = hash64(places.numpy().view(np.uint64) ^ np.uint64(state % 2**64))
        found = hashed(torch.tensor(state, device=PLACE), places.to(PLACE))
        assert np.array_equal(found.cpu().numpy().view(np.uint64), expected)
    keys = Counters(PLACE).draw(5, 6, 4, 10).keys
    whole = hash64(5, 1, 6, 2, np.arange(50))
    assert np.array_equal(hashed(torch.tensor(keys[2]), torch.arange(50)).numpy().view(np.uint64), whole)


@pytest.mark.parametrize("length", [1, 2, 3, 1000, 1001])
def test_numbers_follow_box_muller_for_any_block_size(length, monkeypatch):
    bits = hash64(7, 1, 3, 0, np.arange((length + 1) // 2))
    first = ((bits >> np.uint64(32)).astype(float) + 1) / 2**32
    second = (bits & np.uint64(2**32 - 1)).astype(float) / 2**32
    radius = np.sqrt(-2 * np.log(first))
    expected = np.concatenate([radius * np.cos(2 * np.pi * second), radius * np.sin(2 * np.pi * second)])
    made = numbers(length)
    np.testing.assert_allclose(made, expected[:length], atol=2e-6)
    monkeypatch.setitem(device_module._BLOCKS, PLACE.type, 37)
    assert torch.equal(numbers(length), made)


def test_perturbation_depends_only_on_its_address():
    made = numbers(1000)
    assert torch.equal(numbers(1000, count=50), made)
    for other in ({"seed": 8}, {"generation": 4}, {"number": 1}):
        assert (numbers(1000, **other) != made).float().mean() > 0.99


def test_numbers_are_finite_at_the_ends_of_the_range(monkeypatch):
    ends = torch.tensor([0, -1, 2**32 - 1, -(2**32), 2**63 - 1, -(2**63)])
    monkeypatch.setattr(device_module, "hashed", lambda state, places: ends.to(PLACE)[None])
    made = numbers(12)
    assert float(made.abs().max()) < 6.7  # and no NaN


@pytest.mark.parametrize("name", ["normals", "gumbels"])
def test_numbers_of_a_step_are_those_of_the_host(name):
    seeds = np.arange(400)
    keys = torch.from_numpy(hash64(5, seeds).view(np.int64)).to(PLACE)
    expected = getattr(address, name)(5, seeds[:, None], 7, np.arange(4))
    made = getattr(device_module, name)(keys, 7, 4).cpu()
    np.testing.assert_allclose(made, expected, rtol=1e-3, atol=1e-4)


def test_numbers_of_a_step_are_finite_at_the_ends_of_the_range(monkeypatch):
    ends = torch.tensor([[0, -1]], device=PLACE)
    monkeypatch.setattr(device_module, "hashed", lambda state, places: ends)
    for make in (device_module.normals, device_module.gumbels):
        assert bool(make(torch.zeros(1, dtype=torch.int64, device=PLACE), 0, 2).isfinite().all())


# Statistics


def distance(values):
    """Return the Kolmogorov-Smirnov statistic against the normal distribution, times the square root of n."""
    ordered = torch.special.ndtr(values.double().sort().values)
    steps = torch.arange(len(values) + 1) / len(values)
    return float(torch.maximum(ordered - steps[:-1], steps[1:] - ordered).max()) * math.sqrt(len(values))


@pytest.mark.parametrize("seed", [0, 1, 2**62])
def test_numbers_are_standard_normal(seed):
    values = numbers(2**20 + 1, seed=seed).double()
    n = len(values)
    moments = [float((values**power).mean()) for power in (1, 2, 3, 4)]
    spread = [math.sqrt(each / n) for each in (1, 2, 15, 96)]
    for found, expected, deviation in zip(moments, (0, 1, 0, 3), spread, strict=True):
        assert abs(found - expected) < 4 * deviation
    assert distance(values) < 1.63  # exceeded by chance in 1 of 100 cases
    assert distance(values[: n // 2]) < 1.63  # the cosines
    assert distance(values[n // 2 + 1 :]) < 1.63  # the sines
    beyond = int((values.abs() > 4).sum())
    assert abs(beyond - 6.334e-5 * n) < 4 * math.sqrt(6.334e-5 * n)


def correlation(one, other):
    return abs(float((one * other).mean())) * math.sqrt(len(one))


def test_neighboring_numbers_are_uncorrelated():
    n = 2**18
    values, pairs = numbers(n, number=0), n // 2
    others = [numbers(n, number=1), numbers(n, generation=4), numbers(n, seed=8)]
    shifted = [(values[lag:], values[: n - lag]) for lag in (1, 2, 3, 64, 2**15, pairs)]
    for one, other in [*shifted, *((values, each) for each in others)]:
        assert correlation(one, other) < 4
        squares = (one**2 - 1) / math.sqrt(2), (other**2 - 1) / math.sqrt(2)
        assert correlation(*squares) < 4


# Members and sums


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_matrices_have_the_rank(rank):
    noise = written(source(rank).draw(7, 3, COUNT, SIZE))
    assert bool(noise.isfinite().all())
    assert abs(float(noise.var()) - 1) < 0.2
    for row in noise:
        found = int(torch.linalg.matrix_rank(row[:600].view(20, 30), rtol=1e-4))
        assert found == (rank or 20)
        assert int(torch.linalg.matrix_rank(row[630:918].view(8, 36), rtol=1e-4)) == (rank or 8)


@pytest.mark.parametrize("at_once", [2**18, 4000, 1])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_weighted_sums_equal_those_of_the_dense_noise(rank, at_once, monkeypatch):
    monkeypatch.setitem(device_module._GATHERED, PLACE.type, at_once)
    draws = source(rank).draw(7, 3, COUNT, SIZE)
    weights = np.random.default_rng(0).normal(size=COUNT)
    weights[4] = 0.0
    total = draws.weighted_sum(weights).cpu()
    expected = torch.from_numpy(weights) @ written(draws).double()
    torch.testing.assert_close(total.double(), expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(draws.weighted_sum(weights).cpu(), total)
    assert float(draws.weighted_sum(np.zeros(COUNT)).abs().max()) == 0.0


def test_weighted_sums_of_squares_equal_those_of_the_dense_noise():
    draws, weights = source(0).draw(7, 3, COUNT, SIZE), np.linspace(-1, 2, COUNT)
    shift = torch.linspace(-1, 1, SIZE)
    for given in (None, shift):
        moved = written(draws).double() - (0.0 if given is None else given)
        found = draws.weighted_square_sum(weights, None if given is None else given.to(PLACE)).cpu()
        torch.testing.assert_close(found.double(), torch.from_numpy(weights) @ moved**2, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("rank", [0, 2])
def test_members_are_the_center_plus_mirrored_noise(rank):
    made, center = source(rank), torch.randn(SIZE, generator=torch.Generator().manual_seed(1)).to(PLACE)
    population = DevicePopulation(center, 0.1, made, 7, 2, 6)
    rows = torch.full((6, SIZE), math.nan, device=PLACE)
    write_all(population, None, rows)
    noise = torch.empty(SIZE, device=PLACE)
    made.draw(7, 2, 3, SIZE).write(1, 0.1, noise)
    assert torch.equal(rows[2], noise + center)
    assert torch.equal(rows[3], center - noise)
    assert np.array_equal(write_all(population), rows.cpu().numpy())
    for some in (
        [0],
        [1, 2, 3],
        [5, 4],
        [2, 3, 5, 4],
        [4, 4],
    ):  # whole pairs, a reversed pair, and parts of pairs
        found = write_all(population, some, torch.full((len(some), SIZE), math.nan, device=PLACE))
        assert torch.equal(found, rows[some])


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_number_of_torch_calls_does_not_depend_on_the_number_of_members(rank):
    place, center = torch.device("meta"), torch.zeros(SIZE, device="meta")
    made, calls = source(rank, place), []
    for size in (8, 80):
        population = DevicePopulation(center, 0.1, made, 7, 2, size)
        with CpuTensorRecorder() as seen:
            if rank:
                given = members_of(made, population, range(size))
                for part in made.parts:
                    (given.factors if part.rank else given.parameters)(part)
            else:
                write_all(population, None, torch.empty(size, SIZE, device=place))
            population.draws.weighted_sum(np.ones(size // 2))
        calls.append(seen.calls)
    assert calls[0] == calls[1]


@pytest.mark.parametrize("rank", [1, 3])
def test_members_made_together_equal_those_made_one_by_one(rank):
    made, center = source(rank), torch.randn(SIZE, generator=torch.Generator().manual_seed(1)).to(PLACE)
    population = DevicePopulation(center, 0.1, made, 7, 2, 6)
    together = members_of(made, population, [3, 0, 5])
    for part in made.parts:
        for place, number in enumerate([3, 0, 5]):
            alone = member_of(made, population, number)
            if part.rank:
                for some, own in zip(together.factors(part), alone.factors(part), strict=True):
                    assert torch.equal(some[place], own)
            else:
                own = torch.empty(part.size, device=PLACE)
                alone.write(part, own)
                assert torch.equal(together.parameters(part)[place], own)


# Devices


class CpuTensorRecorder(TorchDispatchMode):
    """Records the CPU tensors returned by torch calls."""

    def __init__(self):
        super().__init__()
        self.on_cpu, self.calls = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self.calls += 1
        for part in tree_leaves(made):
            if isinstance(part, torch.Tensor) and part.device.type == "cpu":
                self.on_cpu.append((str(func), part.numel()))
        return made


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("kind", [OpenAIES, ARS])
def test_no_tensor_of_member_size_is_created_on_the_cpu(kind, rank):
    place = torch.device("meta")  # every torch call works there, and no tensor can be copied back
    strategy = kind(torch.zeros(SIZE), COUNT - 1, perturbation=source(rank, place))
    with CpuTensorRecorder() as seen:
        population = strategy.sample()
        rows = torch.empty(COUNT - 1, SIZE, device=place)
        write_all(population, None, rows)
        strategy.update(np.arange(COUNT - 1.0))
    memory = strategy.optimizer.memory.values() if kind is OpenAIES else ()
    assert {part.device for part in (strategy.center, population.center, *memory)} == {place}
    assert all(size <= COUNT for _, size in seen.on_cpu), seen.on_cpu


@pytest.mark.parametrize("name", ["meta", "gpu", "cuda:99", "", 3.5, "cpu:x"])
def test_invalid_device_is_rejected_in_one_line(name):
    with pytest.raises(InputError, match=r"^device '.*' cannot be used here: .+") as problem:
        as_device(name)
    assert "\n" not in str(problem.value)
