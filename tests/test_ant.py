"""The policy of examples/ant.py: its assumptions about the simulator hold, and it is symmetric."""

import gymnasium
import numpy as np
import pytest
import torch
from tests.examples import load

# Hip and ankle of the front left, back left, back right and front right leg.
PARTNERS = [6, 7, 4, 5, 2, 3, 0, 1]
SIGNS = np.array([-1, 1] * 4)


@pytest.fixture(scope="module")
def example():
    return load("ant")


@pytest.fixture
def env():
    pytest.importorskip("pybullet_envs_gymnasium")
    env = gymnasium.make("AntBulletEnv-v0")
    yield env
    env.close()


def joints(numbers):
    """Mirror one value per joint, shape (8,)."""
    return numbers[PARTNERS] * SIGNS


def observation(seen):
    """Mirror an observation, shape (28,)."""
    body = seen[:8] * [1, -1, 1, 1, -1, 1, -1, 1]
    both = np.stack([joints(seen[8:24:2]), joints(seen[9:24:2])], axis=1)
    return np.concatenate([body, both.flatten(), seen[24:][::-1]])


def trained(example):
    """Return a policy with random parameters."""
    torch.manual_seed(0)
    policy = example.runner(28, 8)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter)
    return policy


def test_the_policy_is_symmetric_with_half_a_stride_of_delay(example):
    policy, drawn = trained(example), np.random.default_rng(0)
    for _ in range(3):
        seen, phase = drawn.normal(size=28), drawn.uniform(0, 6)
        both = torch.tensor(np.stack([seen, observation(seen)]), dtype=torch.float32)
        found, later = policy(both, torch.tensor([[phase], [phase + np.pi]], dtype=torch.float32))
        np.testing.assert_allclose((later[1] - later[0]).item(), np.pi, rtol=1e-5)
        np.testing.assert_allclose(
            found[1].detach().numpy(), joints(found[0].detach().numpy()), rtol=1e-3, atol=1e-3
        )


def test_the_mirror_matches_the_simulator(env):
    drawn = np.random.default_rng(0)
    chosen = drawn.uniform(-0.5, 0.5, (20, 8))
    first, _ = env.reset(seed=1)
    robot, positions = env.unwrapped.robot, first[8:24:2]
    ends = []
    for placed, turn in ((positions, lambda action: action), (joints(positions), joints)):
        env.reset(seed=1)
        for joint, place in zip(robot.ordered_joints, placed, strict=True):
            span = joint.upperLimit - joint.lowerLimit
            joint.reset_current_position(joint.lowerLimit + (place + 1) / 2 * span, 0)
        for action in chosen:
            seen = env.step(turn(action).astype(np.float32))[0]
        ends.append(seen)
    np.testing.assert_allclose(ends[1][:24], observation(ends[0])[:24], rtol=0.05, atol=0.05)
