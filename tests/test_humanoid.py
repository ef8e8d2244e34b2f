"""The policy of examples/humanoid.py: its assumptions about the simulator hold, and it is symmetric."""

import gymnasium
import numpy as np
import pytest
import torch
from tests.examples import load

pytest.importorskip("mujoco")
UNSEEN = ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")
# Joints in the order of the simulator's positions: waist (z, y, x), right leg, left leg, right arm, left arm.
PARTNERS = [0, 1, 2, 7, 8, 9, 10, 3, 4, 5, 6, 14, 15, 16, 11, 12, 13]
SIGNS = np.array([-1, 1, -1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, 1, -1, -1, 1.0])
ACTUATORS = [1, 0, *range(2, 17)]  # they start with the waist's y


@pytest.fixture(scope="module")
def example():
    return load("humanoid")


@pytest.fixture
def env():
    env = gymnasium.make("Humanoid-v5", **{f"include_{name}_in_observation": False for name in UNSEEN})
    yield env
    env.close()


def joints(numbers):
    """Mirror one value per joint."""
    return numbers[..., PARTNERS] * SIGNS


def actions(numbers):
    return joints(numbers[..., ACTUATORS])[..., ACTUATORS]


def observation(seen):
    """Mirror an observation, shape (45,)."""
    root = seen[:5] * [1, 1, -1, 1, -1]
    speeds = seen[22:28] * [1, -1, 1, -1, 1, -1]
    return np.concatenate([root, joints(seen[5:22]), speeds, joints(seen[28:])])


def test_the_mirror_matches_the_simulator(env):
    env.reset(seed=1)
    inner, drawn = env.unwrapped, np.random.default_rng(0)
    position, speed = inner.data.qpos.copy(), inner.data.qvel.copy()
    mirrored = position.copy(), speed.copy()
    mirrored[0][1] *= -1
    mirrored[0][2:] = observation(np.concatenate([position[2:], speed]))[:22]
    mirrored[1][:] = observation(np.concatenate([position[2:], speed]))[22:]
    for chosen in drawn.uniform(-0.4, 0.4, (4, 17)):
        ends = []
        for (place, moving), action in zip(
            [(position, speed), mirrored], [chosen, actions(chosen)], strict=True
        ):
            inner.set_state(place, moving)
            ends.append(inner.step(action)[0])
        # The model's own left hip and knee differ a little from the right ones.
        np.testing.assert_allclose(ends[1], observation(ends[0]), rtol=0.05, atol=0.05)


def test_the_policy_is_symmetric_with_half_a_stride_of_delay(example, env):
    torch.manual_seed(0)
    policy = example.Walker()
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter)
    seen, _ = env.reset(seed=1)
    for number in range(3):
        seen = env.step(env.action_space.sample())[0]
        both = torch.tensor(np.stack([seen, observation(seen)]), dtype=torch.float32)
        found, later = policy(both, torch.tensor([[number + 0.0], [number + example.STRIDE / 2]]))
        assert later.flatten().tolist() == [number + 1, number + example.STRIDE / 2 + 1]
        expected = actions(found[0].detach().numpy())
        np.testing.assert_allclose(found[1].detach().numpy(), expected, rtol=1e-3, atol=1e-3)


def test_the_springs_are_as_strong_as_the_motors(example, env):
    np.testing.assert_array_equal(env.unwrapped.model.actuator_gear[:, 0], example.TORQUE)
