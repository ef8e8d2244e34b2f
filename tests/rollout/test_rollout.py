"""An episode depends only on its member, the normalizer, its seed and its environment.

It does not depend on its slot, the concurrent episodes, their order, or the time of assignment.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.own_code import Leaky
from torch import nn

from escalade.engines.feed import ListFeed
from escalade.engines.results import Results
from escalade.envs import ActionMap, resolve
from escalade.errors import EnvironmentFailure
from escalade.perturbation import GaussianPopulation, NoiseTable
from escalade.policies.modules import Chain
from escalade.policies.networks import batched_network, build, to_vector
from escalade.policies.normalizer import Normalization, Normalizer
from escalade.rollout import rollouts
from escalade.rollout.episodes import EpisodeJob, Episodes
from escalade.rollout.reference import reference_batch
from escalade.rollout.rollouts import RolloutSetup

TABLE = NoiseTable(3, 2**14)
MEMBERS, EVALUATIONS = 12, 3


class Feed:
    """Hands out items in a fixed order, at most ``most`` at a time, and sometimes no items."""

    def __init__(self, items, most=1000, chance=None):
        self.items, self.most, self.chance, self.results = list(items), most, chance, {}

    def take(self, most, wait):
        if self.chance is not None and not wait and self.chance.random() < 0.5:
            return []
        most = min(most, self.most)
        given, self.items = self.items[:most], self.items[most:]
        return given

    def put(self, item, result):
        assert item not in self.results
        self.results[item] = result

    def put_many(self, items, rows):
        for item, row in zip(items.tolist(), rows, strict=True):
            self.put(item, row)

    def alive(self):
        pass


class Batched(nn.Module):
    """Runs through torch.func, with layers that could leak from one member to another."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.first, self.norm = nn.Linear(inputs, 8), nn.LayerNorm(8)
        self.batch, self.last = nn.BatchNorm1d(8), nn.Linear(8, outputs)

    def forward(self, x):
        return self.last(torch.tanh(self.batch(self.norm(self.first(x)))))


def setting(env, backend="gymnasium", network=None, noise=0.0, normalized=True, slots=None, **kwargs):
    """Return rollouts of a small population, and its job."""
    environment = resolve(env, kwargs, backend, 30)
    shape, actions = environment.observation_space.shape, ActionMap(environment.action_space)
    inputs = shape[0] if len(shape) == 1 else shape
    torch.manual_seed(0)
    module = (
        network(inputs, actions.outputs) if network else build("mlp", inputs, actions.outputs, hidden=[8])
    )
    center = to_vector(module)
    population = GaussianPopulation(center, 0.5, TABLE, 3, 4, MEMBERS)
    moments = Normalization(np.full(inputs, 0.1), np.full(inputs, 1.7)) if normalized else None
    job = EpisodeJob(3, 4, population, 2, center, EVALUATIONS, normalization=moments)
    setup = RolloutSetup(environment, batched_network(module, shape), actions, TABLE, noise)
    with pytest.MonkeyPatch.context() as patch:
        if slots:
            few = {name: replace(entry, most_rows=slots) for name, entry in rollouts.BACKENDS.items()}
            patch.setattr(rollouts, "BACKENDS", few)
        return setup(), job


def episodes_of(records):
    """Return the episodes of the records by item."""
    results = Results(len(records))
    for item, record in records.items():
        results.put_many([item], np.array([record]))
    return Episodes.of(results)


def run(rollouts, job, feed):
    rollouts.begin(job)
    rollouts.run(feed)
    return feed.results


def factory_of(policy):
    """Return a factory for a small network of this name."""
    return lambda inputs, outputs: build(policy, inputs, outputs, hidden=[8, 5], init="xavier")


def convolution_and_cell(shape, outputs):
    """Return a convolution followed by a recurrent cell."""
    cell = nn.LSTMCell(2 * 3 * 4, 6)
    return Chain(nn.Conv2d(shape[0], 2, 3), nn.SELU(), nn.Flatten(), cell, nn.Linear(6, outputs))


CASES = {
    "walk": {"env": "tests.environments:Walk-v0"},
    "truncated": {"env": "tests.environments:Walk-v0", "end": "truncated"},
    "noise": {"env": "tests.environments:Walk-v0", "noise": 0.3},
    "plain": {"env": "tests.environments:Walk-v0", "normalized": False},
    "torch": {"env": "tests.environments:Walk-v0", "network": Batched},
    "gru": {"env": "tests.environments:Walk-v0", "network": factory_of("gru")},
    "lstm": {"env": "tests.environments:Walk-v0", "network": factory_of("lstm"), "noise": 0.1},
    "state of one's own": {"env": "tests.environments:Walk-v0", "network": Leaky},
    "images": {
        "observation": "pixels",
        "normalized": False,
        "env": "tests.environments:Tiny-v0",
        "network": convolution_and_cell,
    },
    "cartpole": {"env": "CartPole-v1"},
    "lander": {"env": "LunarLander-v3"},
    "cheetah": {"env": "HalfCheetah-v5"},
    "walker": {"env": "BipedalWalker-v3"},
    "cartpole-envpool": {"env": "CartPole-v1", "backend": "envpool"},
    "lander-envpool": {"env": "LunarLander-v3", "backend": "envpool"},
    "cheetah-envpool": {"env": "HalfCheetah-v5", "backend": "envpool", "noise": 0.1},
    "reacher-mujoco": {"env": "Reacher-v5", "backend": "mujoco", "noise": 0.1},
}


@pytest.mark.parametrize("case", CASES)
def test_episode_does_not_depend_on_concurrent_episodes(case):
    rollouts, job = setting(**CASES[case])
    together = run(rollouts, job, Feed(range(job.items)))
    assert sorted(together) == list(range(2 * MEMBERS + EVALUATIONS))
    assert len({float(result["return"]) for result in together.values()}) >= 6  # the episodes differ
    chance = np.random.default_rng(5)
    few, _ = setting(**CASES[case], slots=5)
    for attempt in range(4):
        items = chance.permutation(job.items)[: chance.integers(1, job.items)].tolist()
        runner = (rollouts, few)[attempt % 2]
        for item, result in run(runner, job, Feed(items, int(chance.integers(1, 9)), chance)).items():
            assert result.tobytes() == together[item].tobytes(), f"item {item}"
    alone = run(few, job, Feed([7]))[7]
    np.testing.assert_array_equal(alone, together[7])
    rollouts.close()
    few.close()


SIZES = {slots: setting("tests.environments:Walk-v0", noise=0.1, slots=slots)[0] for slots in (1, 2, 5, 30)}
JOB = setting("tests.environments:Walk-v0")[1]
TOGETHER = run(SIZES[30], JOB, Feed(range(JOB.items)))


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.lists(st.integers(0, JOB.items - 1), unique=True, min_size=1),
    st.integers(1, 10),
    st.sampled_from(list(SIZES)),
    st.integers(0, 9),
)
def test_results_do_not_depend_on_order_batching_or_slots(items, most, slots, luck):
    results = run(SIZES[slots], JOB, Feed(items, most, np.random.default_rng(luck)))
    assert sorted(results) == sorted(items)
    for item, result in results.items():
        assert result.tobytes() == TOGETHER[item].tobytes()


def test_evaluations_use_the_center_without_action_noise():
    quiet, job = setting("tests.environments:Walk-v0")
    noisy, _ = setting("tests.environments:Walk-v0", noise=0.5)
    first, second = run(quiet, job, Feed(range(job.items))), run(noisy, job, Feed(range(job.items)))
    same = [np.array_equal(first[item], second[item]) for item in range(job.items)]
    assert same[2 * MEMBERS :] == [True] * EVALUATIONS
    # Some members' first actions are clipped to the same bound with and without noise.
    assert sum(same[: 2 * MEMBERS]) < MEMBERS


def test_results_unpack_to_returns_lengths_and_moments():
    rollouts, job = setting("tests.environments:Walk-v0", normalized=True)
    results = run(rollouts, job, Feed(range(job.items)))
    episodes = episodes_of(results)
    assert episodes.moments.shape == (2 * MEMBERS, 2, 2)
    assert episodes.lengths.min() >= 1
    assert episodes.lengths.max() <= 12
    assert (episodes.moments[:, 1] >= 0).all()
    part = episodes[2:5]
    np.testing.assert_array_equal(part.returns, episodes.returns[2:5])


def test_moments_are_those_of_the_policys_observations():
    import gymnasium

    rollouts, job = setting("CartPole-v1")
    item = 7  # the second episode of member 3
    result = run(rollouts, job, Feed([item]))[item]
    env = gymnasium.make("CartPole-v1", max_episode_steps=30)
    observation, _ = env.reset(seed=int(job.episode_seeds(np.array([item]))[0]))
    seen, ended, actions = [], False, ActionMap(env.action_space).compile()
    forward = rollouts.forward
    while not ended:
        seen.append(np.asarray(observation, np.float64))
        forward.load(0, job.population, 3, 0)
        raw = forward(job.normalization.apply(observation[None]))
        observation, _, terminated, truncated, _ = env.step(int(actions(raw)[0]))
        ended = terminated or truncated
    assert (result["return"], result["length"], result["score"]) == (len(seen),) * 3
    mean, squares = result["moments"]
    np.testing.assert_allclose(mean, np.mean(seen, axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(squares, len(seen) * np.var(seen, axis=0), rtol=1e-10)


def test_only_part_of_a_large_population_reports_moments(monkeypatch):
    monkeypatch.setattr("escalade.rollout.episodes.OBSERVED", 5)
    rollouts, job = setting("tests.environments:Walk-v0", normalized=True)
    feed = ListFeed(job.items)
    rollouts.begin(job)
    rollouts.run(feed)
    episodes = Episodes.of(feed.results)
    every = -(-2 * MEMBERS // 5)
    assert every > 1
    observed = (np.arange(job.items) % every == 0) & (np.arange(job.items) < 2 * MEMBERS)
    np.testing.assert_array_equal(episodes.seen, np.where(observed, episodes.lengths, 0))
    assert len(episodes.moments) == observed.sum()
    part = episodes[3 : job.training_items]
    np.testing.assert_array_equal(
        part.moments, episodes.moments[observed[:3].sum() : observed[: job.training_items].sum()]
    )
    np.testing.assert_array_equal((part + part).moments, np.concatenate([part.moments, part.moments]))


def test_observations_far_from_zero_are_normalized_by_their_standard_deviation():
    rollouts, job = setting("tests.environments:Clock-v0")
    first = replace(job, normalization=Normalizer(2).snapshot(), seed_sharing="member")
    results = run(rollouts, first, Feed(range(job.items)))
    episodes = episodes_of(results)[: 2 * MEMBERS]
    normalizer = Normalizer(2)
    normalizer.merge_episodes(episodes.seen, episodes.moments)
    np.testing.assert_allclose(1 / normalizer.snapshot().inverse_std, 1.0, rtol=0.15)


@pytest.mark.filterwarnings("error")
def test_diverged_episodes_are_recorded_without_a_warning():
    rollouts, job = setting("tests.environments:Diverges-v0", every=2, value=np.inf)
    results = run(rollouts, job, Feed(range(job.items)))
    assert any(np.isnan(result["return"]) for result in results.values())


@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
def test_generation_that_fits_in_the_slots_runs_in_one_wave(backend):
    rollouts, job = setting("CartPole-v1", backend)
    assert job.items <= rollouts.slots
    calls = []
    forward = rollouts.forward

    class Counted:
        begin, load = forward.begin, forward.load

        def __call__(self, observations):
            calls.append(len(observations))
            return forward(observations)

        def keep(self, rows):
            forward.keep(rows)

    rollouts.forward = Counted()
    results = run(rollouts, job, Feed(range(job.items)))
    lengths = [int(result["length"]) for result in results.values()]
    alone = 2 * (backend == "gymnasium")  # the first steps of two objects decide how many more to create
    assert len(calls) <= max(lengths) + alone
    assert calls[alone] == job.items
    # Finished episodes are removed, so the batch is never much larger than the running episodes.
    assert sum(calls) <= 1.5 * sum(lengths) + job.items


@pytest.mark.parametrize("when", ["step", "reset"])
def test_environment_error_names_member_generation_step_and_seed(when):
    rollouts, job = setting("tests.environments:Raises-v0", when=when, every=3)
    given = job.episode_seeds(np.arange(job.items))
    bad = [item for item in range(job.items) if given[item] % 3 == 0]
    good = [item for item in range(job.items) if given[item] % 3]
    assert bad
    assert good
    run(rollouts, job, Feed(good))
    for item in (bad[0], bad[-1]):
        with pytest.raises(EnvironmentFailure) as failure:
            run(rollouts, job, Feed([*good[:3], item]))
        said = str(failure.value)
        assert f"member {item // 2}" in said or item >= 2 * MEMBERS
        assert f"reset(seed={given[item]})" in said
        assert "generation 5" in said  # numbered as in progress.csv
        assert re.search(r"the arm fell off \(line \d+ of environments\.py\)", said)


@pytest.mark.filterwarnings("ignore:Raises.close")
def test_error_in_random_play_names_its_line():
    environment = resolve("tests.environments:Raises-v0", {"every": 1})
    actions = ActionMap(environment.action_space)
    said = r"RuntimeError: the arm fell off \(line \d+ of environments\.py\), in random play"
    with pytest.raises(EnvironmentFailure, match=said):
        reference_batch(environment, actions, 1, 8)


def test_step_cap_applies_to_members_but_not_to_evaluations():
    rollouts, job = setting("tests.environments:Walk-v0")
    free = run(rollouts, job, Feed(range(job.items)))
    capped = run(rollouts, replace(job, cap=4), Feed(range(job.items)))
    for item in range(job.items):
        expected = free[item][1] if item >= 2 * MEMBERS else min(free[item][1], 4)
        assert capped[item][1] == expected
