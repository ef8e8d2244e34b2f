"""Sampled actions follow the softmax and are a function of the episode's seed and step."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from tests.environments import Doors, Masked

import escalade
from escalade import InputError
from escalade.envs import ActionMap
from escalade.perturbation import Stream, seeds
from escalade.policies.drawing import make_draws
from escalade.policies.networks import build
from escalade.policies.policy import Policy

MANY = np.arange(40_000)
RAW = np.array([0.1, -0.2, 0.3, 0.05, 0.25], np.float32)


def sample_actions(space, raw=RAW):
    actions = ActionMap(space, head="sample")
    return actions.compile()(raw[: actions.outputs] + make_draws(actions)(MANY, np.full(len(MANY), 7)))


def softmax(raw):
    odds = np.exp(5 * raw.astype(np.float64))
    return odds / odds.sum()


def test_discrete_actions_follow_the_softmax():
    found = sample_actions(spaces.Discrete(5, start=2)) - 2
    np.testing.assert_allclose(np.bincount(found) / len(MANY), softmax(RAW), atol=0.01)


def test_action_components_are_sampled_independently():
    first, second = sample_actions(spaces.MultiDiscrete([2, 3])).T
    expected = np.outer(softmax(RAW[:2]), softmax(RAW[2:]))
    counts = np.histogram2d(first, second, bins=[2, 3])[0] / len(MANY)
    np.testing.assert_allclose(counts, expected, atol=0.01)


def test_binary_actions_follow_the_sigmoid():
    found = sample_actions(spaces.MultiBinary(5)).mean(axis=0)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-5.0 * RAW)), atol=0.01)


def test_sample_depends_only_on_seed_and_step():
    draws = make_draws(ActionMap(spaces.Discrete(3), head="sample"))
    several = draws([5, 6, 7], [0, 4, 4])
    np.testing.assert_array_equal(several[1:2], draws([6], [4]))
    assert not (several == draws([5, 6, 7], [1, 5, 5])).any()


@pytest.mark.parametrize("space", [spaces.Box(-1, 1), spaces.Box(0, 5, (2,), np.int64)])
def test_sampling_continuous_actions_is_rejected(space):
    with pytest.raises(InputError, match="'sample' needs discrete actions"):
        ActionMap(space, head="sample")


def policy(space=None, head="sample"):
    space = space or spaces.Discrete(4)
    observations = spaces.Box(-1.0, 1.0, (2,), np.float32)
    actions = ActionMap(space, head=head)
    network = build(policy="mlp", inputs=(2,), outputs=actions.outputs, hidden=(4,), seed=1)
    return Policy(network, observations, actions)


def test_act_samples_from_the_reset_seed():
    one, seen = policy(), np.zeros(2, np.float32)
    first = [one.act(seen) for _ in range(30)]
    one.reset(0)
    assert first == [one.act(seen) for _ in range(30)]
    one.reset(1)
    assert first != [one.act(seen) for _ in range(30)]
    assert len(set(first)) > 1
    assert {one.act(seen, deterministic=True) for _ in range(30)} == {policy(head="plain").act(seen)}


def test_batch_samples_separately_for_each_episode():
    one, seen = policy(), np.zeros((3, 2), np.float32)
    by_itself = np.stack([one.act(seen) for _ in range(20)])
    one.reset([0, 1, 2])
    np.testing.assert_array_equal(np.stack([one.act(seen) for _ in range(20)]), by_itself)
    one.reset(2)
    assert [one.act(seen[0]) for _ in range(20)] == by_itself[:, 2].tolist()
    with pytest.raises(InputError, match=r"reset had 1 seeds, not 3"):
        one.act(seen)


@pytest.mark.parametrize("head", ["sample", "plain"])
def test_act_never_chooses_an_illegal_action(head):
    one, seen = policy(head=head), np.zeros(2, np.float32)
    assert {one.act(seen, action_mask=[0, 0, 1, 0]) for _ in range(20)} == {2}
    assert {one.act(seen, action_mask=np.array([0, 1, 1, 0], np.int8)) for _ in range(40)} <= {1, 2}
    rows = one.act(np.zeros((2, 2), np.float32), action_mask=[[0, 0, 0, 1], [1, 0, 0, 0]])
    assert rows.tolist() == [3, 0]
    pair = policy(spaces.MultiDiscrete([2, 3]), head)
    assert pair.act(seen, action_mask=(np.array([0, 1]), np.array([0, 0, 1]))).tolist() == [1, 2]


def test_masks_of_the_wrong_size_are_rejected():
    with pytest.raises(InputError, match=r"action_mask has 3 numbers, but Discrete\(4\) needs 4"):
        policy().act(np.zeros(2, np.float32), action_mask=[1, 0, 1])
    with pytest.raises(InputError, match="needs a Discrete or MultiDiscrete action space"):
        policy(spaces.Box(-1, 1), "plain").act(np.zeros(2, np.float32), action_mask=[1])


def play_episode(env: gymnasium.Env, policy, seed):
    """Return the return of an episode played with ``act``."""
    observation, info = env.reset(seed=seed)
    policy.reset(seed)
    total, over = 0.0, False
    while not over:
        action = policy.act(observation, action_mask=info.get("action_mask"))
        observation, reward, terminated, truncated, info = env.step(action)
        total, over = total + reward, terminated or truncated
    return total


@pytest.mark.parametrize(
    ("name", "make", "kwargs"),
    [
        ("Doors", Doors, {}),
        ("Masked", Masked, {}),
        ("Masked", lambda: Masked(inside=True), {"inside": True}),
        ("Masked", lambda: Masked(pair=True), {"pair": True}),
    ],
)
def test_loaded_policy_reproduces_the_episodes_of_evaluate(name, make, kwargs, tmp_path):
    options = {"head": "sample", "generations": 3, "workers": 0, "verbose": False, "env_kwargs": kwargs}
    escalade.train(f"tests.environments:{name}", run_dir=tmp_path / "run", seed=2, **options)
    found = escalade.evaluate(tmp_path / "run", episodes=6, workers=0)
    policy, numbers = escalade.load(tmp_path / "run"), np.arange(6)
    expected = [play_episode(make(), policy, int(s)) for s in seeds(2, Stream.FRESH_EVALUATION, 0, numbers)]
    np.testing.assert_allclose(found.returns, expected)
    assert found.deterministic_returns.shape == (6,)
