"""The walls of examples/trap.py hold an ant, which is Gymnasium's own elsewhere."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def trap():
    spec = importlib.util.spec_from_file_location(
        "trap", Path(__file__).parent.parent / "examples" / "trap.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def thrown(env, velocity):
    """The way of an ant that is thrown from (0.9, 0), in metres, shape (60, 2)."""
    env.reset(seed=1)
    ant = env.unwrapped
    qpos, qvel = ant.data.qpos.copy(), ant.data.qvel.copy()
    qpos[:2], qvel[:2] = (0.9, 0.0), velocity
    ant.set_state(qpos, qvel)
    way = []
    for _ in range(60):
        ant.step(np.zeros(8))
        way.append(ant.data.qpos[:2].copy())
    return np.array(way)


@pytest.mark.parametrize("velocity", [(8.0, 0.0), (0.0, 8.0), (0.0, -8.0)])
def test_no_ant_leaves_through_a_wall(trap, velocity):
    free, held = (thrown(trap.make(walls=walls), velocity) for walls in (False, True))
    assert np.abs(free - (0.9, 0.0)).max() > 3
    assert held[:, 0].max() < trap.BACK - 0.25  # the radius of its body
    assert np.abs(held[:, 1]).max() < trap.HALF_WIDTH - 0.25


def test_the_return_is_the_way_ahead_in_metres(trap):
    env = trap.make()
    env.reset(seed=3)
    began = float(env.unwrapped.data.body("torso").xpos[0])
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(np.full(8, 0.1, np.float32))
        total, ended = total + reward, terminated or truncated
    assert total == pytest.approx(info["x_position"] - began, abs=1e-3)
    assert env.spec.max_episode_steps == trap.STEPS
