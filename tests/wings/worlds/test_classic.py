"""The worlds of classic control agree with Gymnasium's environments."""

import gymnasium
import numpy as np
import pytest
import torch

from escalade import worlds

TWINS = {
    "CartPole-v1": worlds.CartPole,
    "Pendulum-v1": worlds.Pendulum,
    "Acrobot-v1": worlds.Acrobot,
    "MountainCar-v0": worlds.MountainCar,
}


@pytest.mark.parametrize("twin", TWINS)
def test_each_step_equals_gymnasiums(twin):
    env, world = gymnasium.make(twin), TWINS[twin](1)
    assert world.max_episode_steps == env.spec.max_episode_steps
    assert world.single_action_space == env.action_space
    env.action_space.seed(0)
    for seed in range(5):
        env.reset(seed=seed)
        world.reset(seed=torch.tensor([seed]))
        over = False
        while not over:
            world.state = torch.tensor(np.array([env.unwrapped.state]), dtype=torch.float32)
            action = env.action_space.sample()
            seen, reward, ended, cut, _ = env.step(action)
            found = world.step(torch.as_tensor(np.array([action])))
            np.testing.assert_allclose(found[0][0], seen, rtol=1e-5, atol=1e-5)
            assert float(found[1][0]) == pytest.approx(reward, rel=1e-5, abs=1e-5)
            assert (bool(found[2][0]), bool(found[3][0])) == (ended, cut)
            over = ended or cut


@pytest.mark.parametrize("twin", TWINS)
def test_an_episode_depends_only_on_its_seed_in_any_row(twin):
    space = gymnasium.make(twin).action_space
    taken = torch.as_tensor(np.array([space.sample() for _ in range(30)]))

    def played(seeds, row):
        world = TWINS[twin](len(seeds))
        found = [world.reset(seed=torch.tensor(seeds))[0][row]]
        for action in taken:
            found.append(world.step(action.expand(len(seeds), *action.shape))[0][row])
        return torch.stack(found)

    alone = played([7], 0)
    assert torch.equal(alone, played([3, 4, 7, 9], 2))
    assert not torch.equal(alone, played([8], 0))


def test_first_states_fill_gymnasiums_range():
    begun, _ = worlds.CartPole(4096).reset(seed=torch.arange(4096))
    assert begun.abs().max() <= 0.05
    assert begun.mean(0).abs().max() < 0.002
    assert (begun.std(0) - 0.1 / 12**0.5).abs().max() < 0.001
