"""The soft walker follows Newton's laws, as a plain calculation of one episode does."""

import numpy as np
import pytest
import torch
from PIL import Image

import escalade
from escalade.wings.worlds import spring_walker
from escalade.worlds import SpringWalker


def step_plainly(places, speeds, action):
    """One step in NumPy, spring by spring and mass by mass: places and speeds (6, 2)."""
    lengths = spring_walker._LENGTHS.copy()
    lengths[6:] *= 1 + 0.3 * np.clip(action, -1, 1)
    for _ in range(10):
        forces = np.tile([0.0, -9.81], (6, 1))
        for (one, other), rest in zip(spring_walker._SPRINGS, lengths, strict=True):
            along = places[other] - places[one]
            length = np.linalg.norm(along)
            along = along / length
            tension = 1000 * (length - rest) + 6 * (speeds[other] - speeds[one]) @ along
            forces[one] += tension * along
            forces[other] -= tension * along
        speeds = speeds + forces / 300
        for mass in range(6):
            if (depth := -places[mass, 1]) > 0:
                push = max(0.0, 5000 * depth - 30 * speeds[mass, 1]) / 300
                speeds[mass, 0] -= np.clip(speeds[mass, 0], -0.9 * push, 0.9 * push)
                speeds[mass, 1] += push
        places = places + speeds / 300
    return places, speeds


def test_each_step_is_newtons():
    world, rng = SpringWalker(3), np.random.default_rng(0)
    world.reset(seed=torch.arange(3))
    for _ in range(40):
        state = world.state[1].double().numpy().reshape(2, 2, 6)
        actions = rng.uniform(-1.5, 1.5, (3, 4))
        places, speeds = step_plainly(state[0].T, state[1].T, actions[1])
        seen, rewards, ended, _, _ = world.step(torch.tensor(actions, dtype=torch.float32))
        np.testing.assert_allclose(world.state[1], [*places.T.flat, *speeds.T.flat], rtol=1e-4, atol=1e-4)
        assert float(rewards[1]) == pytest.approx(places[:, 0].mean() - state[0, 0].mean(), abs=1e-5)
        assert bool(ended[1]) == (places[:4, 1] < 0).any()
        relative = places[:, 0] - places[:4, 0].mean()
        np.testing.assert_allclose(seen[1], [*relative, *places[:, 1], *speeds.T.flat], rtol=1e-4, atol=1e-4)


def test_springs_and_muscles_do_not_move_the_mean_in_the_air():
    world = SpringWalker(2)
    world.reset(seed=torch.arange(2))
    world.state[:, 6:12] += 100
    start = world.state.clone()
    for _ in range(30):
        world.step(torch.rand(2, 4) * 2 - 1)
    means = world.state.unflatten(-1, (4, 6)).mean(-1) - start.unflatten(-1, (4, 6)).mean(-1)
    torch.testing.assert_close(means[:, 2], torch.zeros(2), atol=1e-4, rtol=0)
    torch.testing.assert_close(means[:, 3], torch.full((2,), -9.81), atol=1e-3, rtol=0)


def test_an_episode_follows_from_its_seed_whatever_the_row():
    actions = torch.rand(20, 4) * 2 - 1

    def played(seeds, row):
        world = SpringWalker(len(seeds))
        world.reset(seed=torch.tensor(seeds))
        for action in actions:
            world.step(action.expand(len(seeds), 4))
        return world.state[row]

    assert torch.equal(played([7], 0), played([3, 4, 7, *range(20, 90)], 2))
    assert not torch.equal(played([7], 0), played([8], 0))


def test_the_first_posture_stands():
    world = SpringWalker(8)
    world.reset(seed=torch.arange(8))
    ends = [world.step(torch.zeros(8, 4))[2] for _ in range(world.max_episode_steps)]
    assert not torch.stack(ends).any()


def test_a_picture_shows_body_and_ground():
    world = SpringWalker(2)
    world.reset(seed=torch.arange(2))
    image = world.render()
    assert image.shape == (180, 400, 3)
    assert image.dtype == torch.uint8
    assert image[5].float().mean() > 240  # sky
    assert 100 < image[-1].float().mean() < 200  # ground
    assert (image[60:150].float().std(-1) > 50).any()  # red muscles


@pytest.mark.slow("src/escalade/wings/worlds", "src/escalade/engines")
def test_it_learns_to_move_and_can_be_filmed(tmp_path):
    run = escalade.train(
        "escalade.worlds:SpringWalker",
        population=32,
        generations=16,
        seed=1,
        run_dir=tmp_path / "run",
        verbose=False,
    )
    assert run.summary["eval_return_mean"] > 2  # meters
    escalade.render(run, tmp_path / "walk.gif", max_steps=3)
    with Image.open(tmp_path / "walk.gif") as film:
        assert film.size == (400, 180)
        assert film.info["duration"] == 30  # milliseconds: 30 images a second, in hundredths
