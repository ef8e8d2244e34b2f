"""Stateful policies from end to end: user-defined and named ones, trained, rendered and loaded."""

from typing import NamedTuple

import gymnasium
import numpy as np
import pytest
import torch
from tests.own_code import Leaky
from torch import nn

import escalade
from escalade import InputError
from escalade.api.evaluate import render
from escalade.media import video
from escalade.perturbation import Stream, seeds
from escalade.policies.modules import map_state
from escalade.policies.networks import to_vector

ENV = "tests.environments:Walk-v0"
OPTIONS = {"population": 6, "generations": 2, "seed": 3, "eval_every": 2, "eval_episodes": 4}
OPTIONS |= {"preset": None, "verbose": False, "hidden": [5, 4], "episodes_per_member": 2, "sigma": 0.3}
OWN = OPTIONS | {"hidden": None}


def leaky(inputs=2, outputs=1):
    torch.manual_seed(0)
    return Leaky(inputs, outputs)


def trained(policy, folder, **options):
    own = {"network": leaky()} if policy == "own" else {"policy": policy}
    return escalade.train(ENV, run_dir=folder, **own, **(OWN if policy == "own" else OPTIONS) | options)


def network_of(policy):
    return {"network": leaky()} if policy == "own" else {}


@pytest.mark.parametrize("policy", ["own", "gru"])
def test_training_loading_and_resuming_are_bit_identical(policy, tmp_path):
    first = trained(policy, tmp_path / "a", workers=0)
    again = trained(policy, tmp_path / "b", workers=1)
    digest = first.summary["params_sha256"]
    assert again.summary["params_sha256"] == digest
    trained(policy, tmp_path / "c", workers=0, generations=1)
    resumed = escalade.resume(tmp_path / "c", generations=2, verbose=False, **network_of(policy))
    assert resumed.summary["params_sha256"] == digest


@pytest.fixture(scope="module", params=["own", "lstm"])
def run(request, tmp_path_factory):
    """A run, and the network into which its policy is loaded."""
    policy = request.param
    folder = tmp_path_factory.mktemp("run") / "r"
    return trained(policy, folder, workers=0, action_map="tanh"), network_of(policy)


def return_by_hand(policy, seed, env=None):
    env = env or gymnasium.make("Walk-v0", max_episode_steps=None)
    observation, _ = env.reset(seed=seed)
    policy.reset(seed)
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        total, ended = total + reward, terminated or truncated
    return total


def test_loaded_policy_reproduces_the_evaluation(run):
    done, own = run
    found = escalade.evaluate(done, episodes=5, workers=0, **own)
    policy = escalade.load(done, **own)
    starts = seeds(OPTIONS["seed"], Stream.FRESH_EVALUATION, 0, np.arange(5))
    expected = [return_by_hand(policy, int(seed)) for seed in starts]
    np.testing.assert_allclose(found.returns, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("policy", ["gru", "lstm"])
def test_policy_with_a_vector_first_layer_accepts_images(policy, tmp_path):
    env, kwargs = "tests.environments:Tiny-v0", {"observation": "pixels", "action": "box32"}
    options = OPTIONS | {"hidden": [4], "workers": 0, "env_kwargs": kwargs}
    done = escalade.train(env, policy=policy, run_dir=tmp_path / "r", **options)
    loaded, objects = escalade.load(done), escalade.envs.resolve(env, kwargs)
    starts = seeds(OPTIONS["seed"], Stream.FRESH_EVALUATION, 0, np.arange(3))
    expected = [return_by_hand(loaded, int(seed), objects.make()) for seed in starts]
    found = escalade.evaluate(done, episodes=3, workers=0)
    np.testing.assert_allclose(found.returns, expected, rtol=1e-4, atol=1e-4)


def test_loaded_policy_keeps_its_state_until_reset(run):
    done, own = run
    policy = escalade.load(done, **own)
    seen = [np.array([0.3, -0.2]), np.array([1.0, 0.4]), np.array([0.3, -0.2])]
    first = [policy.act(part).item() for part in seen]
    assert first[0] != first[2]
    policy.reset()
    assert [policy.act(part).item() for part in seen] == first
    other = escalade.load(done, **own)
    assert [other.act(part).item() for part in seen] == first
    policy.set(to_vector(policy.network) + 0.1, None)
    moved = policy.act(seen[0])
    policy.reset()
    assert policy.act(seen[0]) == moved  # new parameters start a new episode


def test_batch_of_observations_is_processed_with_its_states(run):
    done, own = run
    policy = escalade.load(done, **own)
    assert policy.stateful
    policy.reset(1)
    single = policy.act(np.array([0.3, -0.2]))
    states = map_state(lambda part: part[None].repeat_interleave(3, 0), policy.network.initial_state(1))
    outputs, after = policy(torch.tensor([[0.3, -0.2]] * 3, dtype=torch.float64), states)
    assert outputs.shape == (3, 1)
    np.testing.assert_allclose(np.tanh(outputs[2].detach().numpy()), single, rtol=1e-5, atol=1e-6)
    map_state(lambda part: pytest.fail("not a batch") if len(part) != 3 else part, after)


def test_video_starts_a_new_episode(tmp_path, monkeypatch):
    own = {"network": leaky(4, 2)}
    done = escalade.train("CartPole-v1", run_dir=tmp_path / "r", workers=0, **own, **OWN)
    policy = escalade.load(done, **own)
    monkeypatch.setattr(video, "_write_gif", lambda output, frames, fps: list(frames))
    for seed in (4, 5):
        total, _ = render(done, tmp_path / "film.gif", checkpoint="latest", seed=seed, **own)
        assert total == return_by_hand(policy, seed, escalade.envs.resolve("CartPole-v1").make())


class Growing(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.layer, self.change = nn.Linear(2, 1), change

    def initial_state(self, seed):
        return torch.zeros(3) if self.change != "text" else "nothing"

    def forward(self, x, state):
        changed = {"shape": lambda: state[:, :2], "type": state.double, "text": state.clone}
        output = self.layer(x)
        return output if self.change == "one" else (output, changed[self.change]())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("shape", r"it changed from \(3,\) of torch.float32 to \(2,\) of torch.float32"),
        ("type", r"it changed from \(3,\) of torch.float32 to \(3,\) of torch.float64"),
        (
            "text",
            "a policy's state must consist of tensors, or of tuples, lists and dicts of tensors, not str",
        ),
        ("one", "must return a pair of outputs and next state"),
    ],
)
def test_invalid_state_is_rejected(change, said):
    with pytest.raises(InputError, match=said):
        escalade.train(ENV, network=Growing(change), preset=None, generations=1, workers=0, verbose=False)


class Memory(NamedTuple):
    fast: torch.Tensor
    slow: torch.Tensor


class Named(nn.Module):
    """Reads its state by field name in every step."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def initial_state(self, seed):
        return Memory(torch.zeros(1), torch.ones(1))

    def forward(self, x, state):
        fast = 0.5 * state.fast + self.layer(x)
        return fast + state.slow, Memory(fast, 0.9 * state.slow)


def test_state_may_be_a_named_tuple(tmp_path):
    torch.manual_seed(0)
    done = escalade.train(ENV, network=Named(), run_dir=tmp_path / "r", workers=0, **OWN)
    assert len(escalade.evaluate(done, episodes=2, workers=0, network=Named()).returns) == 2
    policy = escalade.load(done, network=Named())
    policy.reset(1)
    assert [len(policy.act(np.ones(2))) for _ in range(3)] == [1, 1, 1]
