"""The walls of examples/trap.py hold Gymnasium's ant."""

import numpy as np
import pytest
from tests.examples import load

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def trap():
    return load("trap")


def thrown(env, place, velocity):
    """Return the path of an ant thrown from a place, in meters, shape (60, 2)."""
    env.reset(seed=1)
    ant = env.unwrapped
    qpos, qvel = ant.data.qpos.copy(), ant.data.qvel.copy()
    qpos[:2], qvel[:2] = place, velocity
    ant.set_state(qpos, qvel)
    way = []
    for _ in range(60):
        ant.step(np.zeros(8))
        way.append(ant.data.qpos[:2].copy())
    return np.array(way)


def test_ants_cannot_pass_the_back_wall(trap):
    free, held = (thrown(trap.make(walls=walls), (0.0, 0.0), (8.0, 0.0)) for walls in (False, True))
    assert free[:, 0].max() > trap.BEYOND
    assert held[:, 0].max() < trap.BACK - 0.25  # the radius of its body


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_ants_cannot_enter_through_a_side(trap, side):
    place, velocity = (1.35, (trap.HALF_WIDTH + 1) * side), (0.0, -12.0 * side)
    free, held = (thrown(trap.make(walls=walls), place, velocity) for walls in (False, True))
    assert (side * free[:, 1]).min() < 0
    beside = (held[:, 0] > trap.OPENING) & (held[:, 0] < trap.BACK)
    assert beside.any()
    assert (side * held[beside, 1]).min() > trap.HALF_WIDTH + 0.25


def test_the_return_is_the_forward_distance_in_meters(trap):
    env = trap.make()
    env.reset(seed=3)
    began = float(env.unwrapped.data.qpos[0])
    total, steps, ended = 0.0, 0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(np.full(8, 0.1, np.float32))
        total, steps, ended = total + reward, steps + 1, terminated or truncated
    assert total == pytest.approx(info["x_position"] - began)
    assert (steps, truncated) == (trap.STEPS, True)
