"""Virtual batch normalization: agreement with batch normalization, the reference batch, and its purpose."""

import numpy as np
import pytest
import torch
from tests.members import load
from torch import nn

import escalade
from escalade.policies.modules import Chain, VirtualBatchNorm
from escalade.policies.networks import batched_network, to_vector

SHAPE = (2, 37, 40)


def scenes(count, seed):
    """Return frames of two bright boxes moving on a dark background, shape (count, 2, 37, 40)."""
    chance = np.random.default_rng(seed)
    made = np.full((count, *SHAPE), 40, np.uint8)
    for picture in made:
        for _ in range(2):
            top, left = chance.integers(0, 31, 2)
            high, wide = chance.integers(2, 6, 2)
            for step, frame in enumerate(picture):
                frame[top + step : top + high + step, left : left + wide] = 200
    return made


def test_reference_batch_is_normalized_like_batch_normalization():
    torch.manual_seed(0)
    network = Chain(nn.Conv2d(2, 3, 4, stride=2), VirtualBatchNorm(3), nn.ReLU(), reference_shape=SHAPE)
    network.set_reference(torch.from_numpy(scenes(128, 1)), 255.0)
    seen = network.reference_seen
    with torch.no_grad():
        network[1].bias += torch.tensor([0.1, -0.2, 0.3])
        batch = nn.BatchNorm2d(3, eps=1e-3).train()
        batch.bias.copy_(network[1].bias)
        expected = torch.relu(batch(network[0](seen)))
        (mean, inverse_std) = network.initial_state(0)[0]
        state = ((mean.expand(128, 3), inverse_std.expand(128, 3)),)
        torch.testing.assert_close(network(seen, state)[0], expected, rtol=1e-4, atol=1e-5)
    forward = batched_network(network, SHAPE).forward(2)
    load(forward, 1, to_vector(network))
    load(forward, 0, to_vector(network))
    found = forward(seen[:2].numpy())
    np.testing.assert_allclose(found, expected[:2], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("reference")
    options = {"env_kwargs": {"observation": "picture"}, "policy": "openai-atari", "population": 2}
    options |= {"generations": 1, "preset": None, "verbose": False, "workers": 0, "eval_episodes": 2}
    return [
        escalade.train("tests.environments:Tiny-v0", run_dir=place / f"{number}", seed=seed, **options)
        for number, seed in enumerate((1, 1, 2))
    ]


def test_reference_is_played_from_the_run_seed_and_saved_with_the_policy(runs):
    first, again, other = (run.policy.network.reference for run in runs)
    assert first.dtype == torch.uint8
    assert first.shape == (128, 1, 20, 22)
    assert len(torch.unique(first, dim=0)) > 100
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    loaded = escalade.load(runs[0])
    assert torch.equal(loaded.network.reference, first)
    assert float(loaded.network.reference_divisor) == 255.0
    seen = np.random.default_rng(1).integers(0, 256, (1, 20, 22), np.uint8)
    np.testing.assert_array_equal(loaded.act(seen), runs[0].policy.act(seen))
    escalade.evaluate(runs[0], episodes=2, workers=0)
