"""Sums of a batch of episodes, and the forward pass of small MLPs: a row depends on itself alone."""

import numpy as np
import pytest
import torch
from torch import nn

from escalade.perturbation import GaussianPopulation, LowRank, NoiseTable
from escalade.policies.networks import batched_network, to_vector
from escalade.policies.normalizer import Normalization
from escalade.rollout.episodes import EpisodeJob
from escalade.wings.worlds.sums import Moments, Sums, flat
from escalade.wings.worlds.wide import make_wide

TABLE = NoiseTable(0, 2**16)


def mlp(inputs, hidden, outputs):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def job_of(network, members, episodes=1):
    center = to_vector(network)
    population = GaussianPopulation(center, 0.3, TABLE, 1, 2, members)
    return EpisodeJob(0, 2, population, episodes=episodes, center=center, evaluations=3)


@pytest.mark.parametrize(("inputs", "hidden", "outputs"), [(4, 16, 2), (1, 7, 1), (3, 5, 3)])
def test_a_row_has_the_same_outputs_in_any_position(inputs, hidden, outputs):
    network = mlp(inputs, hidden, outputs)
    stack, job = batched_network(network), job_of(network, 20, episodes=2)
    wide, items = make_wide(stack, TABLE), np.arange(43)
    seen = np.random.default_rng(0).standard_normal((43, inputs), np.float32)
    wide.begin(job)
    wide.load(items, items)
    whole = wide.outputs(seen).copy()
    rows = np.array([1, 2, 17, 18, 30, 41, 42])
    wide.keep(rows)
    np.testing.assert_array_equal(wide.outputs(seen[rows]), whole[rows])
    for row in (0, 17, 42):
        wide.load(items[row : row + 1], items[:1])
        np.testing.assert_array_equal(wide.outputs(seen[row : row + 1])[0], whole[row])
    usual = stack.forward(43)
    for row in items:
        usual.load(row, *job.individual(int(row)))
    np.testing.assert_allclose(usual(seen), whole, rtol=1e-5, atol=1e-6)


def test_other_networks_have_no_wide_forward_pass():
    assert make_wide(batched_network(mlp(4, 128, 2)), TABLE) is None
    assert (
        make_wide(batched_network(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()), (1, 4, 4)), TABLE) is None
    )
    small = mlp(4, 8, 2)
    shapes = tuple(tuple(part.shape) for part in small.parameters())
    assert make_wide(batched_network(small), LowRank(TABLE, 1, shapes)) is None


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_moments_and_inputs_are_those_of_each_episode(kind):
    rows, size, steps = 6, 3, 21
    chance = np.random.default_rng(1)
    seen = torch.from_numpy(1e4 + chance.standard_normal((steps, rows, size))).to(kind)
    lengths = np.array([21, 3, 8, 16, 9, 1])
    normalization = Normalization(np.full(size, 1e4 + 0.3), np.full(size, 0.5))
    watched = torch.tensor([0, 2, 4, 5])
    sums = Sums(torch.full((rows,), steps))
    moments = Moments(normalization, flat(seen[0]), watched, 8)
    at = torch.arange(rows)
    for step in range(steps):
        if step and step % 8 == 0:
            moments.flush(sums.seen)
            (on,) = torch.nonzero(sums.alive, as_tuple=True)
            moments.select(on, len(at))
            sums.select(on)
            at = at[on]
        given = flat(seen[step][at])
        sums.observe(given)
        moments.add(given)
        expected = normalization.apply(given.double().numpy())
        np.testing.assert_allclose(moments.normalized(given), expected, rtol=1e-4, atol=1e-4)
        sums.add(torch.ones(len(at)), torch.from_numpy(lengths)[at] == step + 1, step)
    moments.flush(sums.seen)
    sums.finish()
    np.testing.assert_array_equal(sums.lengths, lengths)
    np.testing.assert_array_equal(sums.returns, lengths)
    for found, row in zip(moments.found(lengths[watched]), watched.tolist(), strict=True):
        own = seen[: lengths[row], row].double().numpy()
        np.testing.assert_allclose(
            found, [own.mean(0), ((own - own.mean(0)) ** 2).sum(0)], rtol=1e-9, atol=1e-5
        )


def test_an_episode_with_nonfinite_observations_returns_nan_unless_it_has_ended():
    sums = Sums(torch.tensor([5, 5, 5]))
    for step, bad in enumerate([0.0, float("inf")]):
        sums.observe(torch.tensor([[1.0], [bad], [bad]]))
        sums.add(torch.ones(3), torch.tensor([False, False, step == 0]), step)
    sums.finish()
    assert torch.isnan(sums.returns).tolist() == [False, True, False]
