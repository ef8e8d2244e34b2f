"""Images as observations: layout, type and scaling."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.rollout.test_rollout import MEMBERS, TABLE, Feed, episodes_of, run
from torch import nn

import escalade
from escalade.config.files import read_config
from escalade.config.options import Config
from escalade.envs import ActionMap, resolve, vectorize
from escalade.envs.spaces import observation_shape
from escalade.perturbation import GaussianPopulation
from escalade.policies.networks import batched_network, build, to_vector
from escalade.policies.normalizer import Normalization
from escalade.policies.policy import Policy, load
from escalade.rollout.episodes import EpisodeJob
from escalade.rollout.rollouts import RolloutSetup
from escalade.training.environments import find_environment
from escalade.training.parts import make_policy

TINY = "tests.environments:Tiny-v0"
LAYOUTS = {"pixels": (3, 5, 6), "channels first": (3, 5, 6), "float image": (1, 4, 5)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_channels_come_first(layout):
    environment = resolve(TINY, {"observation": layout})
    space = environment.observation_space
    assert observation_shape(space) == space.shape == LAYOUTS[layout]
    vector = vectorize(environment, 2)
    seen = vector.reset(np.arange(2), np.array([5, 6]))
    assert seen.shape == (2, *space.shape)
    assert seen.dtype == space.dtype
    env = environment.make()
    own, _ = env.reset(seed=6)
    np.testing.assert_array_equal(seen[1], own)
    raw, _ = env.unwrapped.reset(seed=6)
    np.testing.assert_array_equal(own, raw if raw.shape == own.shape else np.moveaxis(raw, -1, 0))
    assert own.flags.c_contiguous
    assert space.contains(own)


class Recording(nn.Module):
    """A small CNN that records its inputs."""

    def __init__(self, channels, outputs):
        super().__init__()
        self.convolution = nn.Conv2d(channels, 2, 3, stride=2)
        self.last = nn.LazyLinear(outputs)

    def forward(self, x):
        return self.last(torch.tanh(self.convolution(x)).flatten(1))


def network(space, outputs):
    torch.manual_seed(1)
    module = Recording(space.shape[0], outputs)
    module(torch.zeros(1, *space.shape))
    return module


def rollouts(layout, module, slots_of=None, **setup):
    environment = resolve(TINY, {"observation": layout})
    actions = ActionMap(environment.action_space)
    center = to_vector(module)
    population = GaussianPopulation(center, 0.5, TABLE, 3, 4, MEMBERS)
    job = EpisodeJob(3, 4, population, 2, center, 2)
    return RolloutSetup(environment, batched_network(module), actions, TABLE, **setup)(), job


@pytest.mark.parametrize("layout", ["pixels", "float image"])
def test_an_episode_of_images_is_the_same_beside_any_other_episodes(layout):
    space = resolve(TINY, {"observation": layout}).observation_space
    runner, job = rollouts(layout, network(space, 3))
    together = run(runner, job, Feed(range(job.items)))
    assert len({float(result["return"]) for result in together.values()}) > 10
    alone = run(runner, job, Feed([7]))
    np.testing.assert_array_equal(alone[7], together[7])
    for item, result in run(runner, job, Feed(reversed(range(job.items)), 5)).items():
        assert result.tobytes() == together[item].tobytes()


def spied(runner):
    """The list to which the runner appends the inputs of networks."""
    seen, forward = [], runner.forward
    runner.forward = type(
        "Spy",
        (),
        {
            "__call__": lambda self, x: (seen.append(x.copy()), forward(x))[1],
            "begin": forward.begin,
            "load": forward.load,
            "keep": forward.keep,
        },
    )()
    return seen


def test_rollouts_and_policies_scale_alike():
    environment = resolve(TINY, {"observation": "pixels"})
    module = build("mlp", 90, 3, hidden=[4])
    runner, job = rollouts("pixels", module)
    seen = spied(runner)
    run(runner, job, Feed([0]))
    assert seen[0].dtype == np.float32
    assert seen[0].shape == (1, 3, 5, 6)
    env = environment.make()
    first, _ = env.reset(seed=int(job.episode_seeds(np.array([0]))[0]))
    np.testing.assert_array_equal(seen[0][0], first.astype(np.float32) / 255)
    policy = Policy(module, environment.observation_space, ActionMap(environment.action_space))
    raw = policy(torch.from_numpy(first[None]))
    torch.testing.assert_close(raw, module(torch.from_numpy(seen[0]).flatten(1)))


@pytest.mark.parametrize(
    ("options", "normalized"),
    [
        ({"policy": "mlp"}, True),
        ({"policy": "linear"}, True),
        ({"policy": "mlp", "normalize_observations": False}, False),
        ({"network": nn.Sequential(nn.Flatten(), nn.Linear(90, 3))}, False),
    ],
)
def test_small_images_are_normalized_by_default_if_the_network_flattens_them(options, normalized, tmp_path):
    kwargs = {"observation": "pixels"}
    few = {"population": 2, "preset": None, "verbose": False, "workers": 0, "generations": 1}
    run = escalade.train(TINY, env_kwargs=kwargs, run_dir=tmp_path / "run", **few, **options)
    assert run.policy.normalized is normalized
    assert bool(read_config(run.folder).normalize_observations) is normalized


@pytest.mark.parametrize(
    ("options", "advised"),
    [
        ({}, True),
        ({"policy": "small-cnn"}, False),
        ({"resize": 20}, False),
        ({"network": nn.Sequential(nn.Flatten(), nn.Linear(4800, 3))}, False),
    ],
)
def test_a_run_advises_small_images_if_the_network_flattens_large_ones(options, advised, tmp_path, capsys):
    few = {"population": 2, "preset": None, "workers": 0, "generations": 1}
    kwargs = {"observation": "large picture"}
    escalade.train(TINY, env_kwargs=kwargs, run_dir=tmp_path / "run", **few, **options)
    printed = capsys.readouterr()
    assert ("flattens images of 4,800 numbers" in printed.err + printed.out) is advised


def test_images_are_normalized_by_running_moments_on_request(tmp_path):
    config = Config(env=TINY, env_kwargs={"observation": "pixels"}, hidden=(4,), normalize_observations=True)
    environment = find_environment(config)
    policy = make_policy(config, environment)
    mean = np.arange(90, dtype=np.float64)
    policy.set(to_vector(policy.network), Normalization(mean, np.full(90, 0.5)))
    policy.save(tmp_path / "p.safetensors")
    again = load(tmp_path / "p.safetensors")
    image = environment.observation_space.sample()
    seen = np.clip((image.reshape(-1) - mean) * 0.5, -5, 5).astype(np.float32)
    expected = policy.network(torch.from_numpy(seen[None]))
    for one in (policy, again):
        torch.testing.assert_close(one(torch.from_numpy(image[None])), expected)


def test_moments_of_images_are_those_of_the_frames():
    module = build("mlp", 90, 3, hidden=[4])
    runner, job = rollouts("pixels", module, normalize_images=True)
    job = replace(job, normalization=Normalization(np.zeros(90), np.ones(90), math.inf))
    seen = spied(runner)
    episodes = episodes_of(run(runner, job, Feed([0])))
    assert seen[0].shape == (1, 3, 5, 6)
    frames = np.concatenate(seen).reshape(-1, 90)
    assert episodes.seen.tolist() == [len(frames)]
    mean, squares = episodes.moments[0]
    np.testing.assert_allclose(mean, frames.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(squares, len(frames) * frames.var(axis=0), rtol=1e-6)
    assert squares.any()
