"""The physics of examples/maze.py: walls, sensors, episode ends, and many robots at once."""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import escalade
from escalade.envs.backends import BACKENDS

EXAMPLES = str(Path(__file__).parent.parent / "examples")


@pytest.fixture(scope="module")
def maze():
    """The example as a module; its registrations are removed after these tests."""
    before = dict(BACKENDS)
    sys.path.insert(0, EXAMPLES)
    import maze

    yield maze
    BACKENDS.clear()
    BACKENDS.update(before)
    del gymnasium.registry["Maze-v0"], sys.modules["maze"]
    sys.path.remove(EXAMPLES)


def ranges_of(maze, place, heading=0.0):
    return maze.free_ways(
        np.array([place], float), heading + np.array([[0.0, np.pi / 2, np.pi, -np.pi / 2]])
    )[0]


def test_rays_end_at_the_nearest_wall(maze):
    # East, north, west, south; the range is 100.
    np.testing.assert_allclose(ranges_of(maze, (30.0, 25.0)), [100.0, 100.0, 30.0, 25.0])
    # Inside the dead end.
    np.testing.assert_allclose(ranges_of(maze, (110.0, 120.0)), [15.0, 30.0, 100.0, 100.0])
    np.testing.assert_allclose(ranges_of(maze, (110.0, 120.0), np.pi / 2), [30.0, 100.0, 100.0, 15.0])


def test_sensors_report_ranges_and_the_direction_of_the_goal(maze):
    robots, one = maze.Robots(1), np.array([0])
    seen = robots.seen(one)[0]
    # The robot faces north: right, right ahead, ahead, left ahead, left, behind.
    np.testing.assert_allclose(seen[:6], [1.0, 1.0, 1.0, 30 * np.sqrt(2) / 100, 0.3, 0.25])
    assert seen[6:10].tolist() == [1.0, 0.0, 0.0, 0.0]  # ahead
    for heading, place in ((0.0, 1), (-np.pi / 2, 2), (np.pi, 3)):
        robots.headings[0] = heading
        assert robots.seen(one)[0, 6:10].argmax() == place


def test_a_robot_accelerates_turns_and_stops_at_a_wall(maze):
    robots, one = maze.Robots(1), np.array([0])
    for speed in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.0):
        before = robots.places[0].copy()
        robots.move(one, np.array([[5.0, 0.0]]))  # clipped to 1
        np.testing.assert_allclose(robots.places[0] - before, [0.0, speed], atol=1e-12)
    for _ in range(100):
        robots.move(one, np.array([[1.0, 0.0]]))
    assert 144 - maze.MOST_SPEED <= robots.places[0, 1] <= 150 - maze.RADIUS  # the wall below the goal
    assert robots.speeds[0] < maze.MOST_SPEED
    robots.move(one, np.array([[0.0, 1.0]]))
    assert robots.headings[0] == pytest.approx(maze.HEADING + 0.05)


def test_no_robot_leaves_the_maze_or_crosses_a_wall(maze):
    rng, robots, all_of_them = np.random.default_rng(1), maze.Robots(64), np.arange(64)
    for _ in range(maze.STEPS):
        before = robots.places.copy()
        robots.move(all_of_them, rng.uniform(-1, 1, (64, 2)) + np.array([0.5, 0.0]))
        assert float(maze.distances(robots.places).min()) >= maze.RADIUS
        assert float(np.linalg.norm(robots.places - before, axis=1).max()) <= maze.MOST_SPEED + 1e-9
    assert (robots.places > 0).all()
    assert (robots.places < maze.SIZE).all()


def test_many_robots_are_bit_identical_to_one(maze):
    rng = np.random.default_rng(2)
    actions = rng.uniform(-1, 1, (maze.STEPS, 2, 2)).astype(np.float32)
    actions[..., 0] += 0.3
    slots, vector = np.arange(2), maze.make_vector(None, 2)
    first = vector.reset(slots, slots)
    envs = [gymnasium.make("maze:Maze-v0") for _ in slots]
    for robot, env in enumerate(envs):
        np.testing.assert_array_equal(env.reset(seed=0)[0], first[robot])
    for step in range(maze.STEPS):
        observations, rewards, ended = vector.step(slots, actions[step])
        alone = [env.step(action) for env, action in zip(envs, actions[step], strict=True)]
        for robot, (observation, reward, terminated, truncated, info) in enumerate(alone):
            np.testing.assert_array_equal(observations[robot], observation)
            assert (rewards[robot], ended[robot]) == (reward, terminated or truncated)
            assert vector.infos(slots)[robot].tolist() == [info["x"], info["y"]]
    assert ended.all()
    assert (rewards < 0).all()


def test_the_episode_ends_at_the_goal(maze):
    env = maze.Maze()
    env.reset()
    env.robots.places[0] = (maze.GOAL[0] + maze.ARRIVED + 0.2, maze.GOAL[1])
    env.robots.headings[0] = np.pi
    _, reward, terminated, truncated, _ = env.step(np.array([1.0, 0.0], np.float32))
    assert (terminated, truncated) == (True, False)
    assert -maze.ARRIVED < reward < 0


def test_the_environment_passes_gymnasiums_checks(maze):
    from gymnasium.utils.env_checker import check_env

    check_env(gymnasium.make("maze:Maze-v0").unwrapped, skip_render_check=True)


def test_the_maze_backend_and_gymnasium_workers_give_identical_results(tmp_path, maze):
    options = maze.SETTINGS | {"novelty": "nsr", "generations": 2, "population": 4, "verbose": False}
    alone = escalade.train("maze:Maze-v0", workers=0, run_dir=tmp_path / "alone", **options)
    other = options | {"backend": "gymnasium"}
    slow = escalade.train("maze:Maze-v0", workers=2, run_dir=tmp_path / "slow", **other)
    assert alone.summary["params_sha256"] == slow.summary["params_sha256"]
    assert alone.summary["backend"] == "maze"
