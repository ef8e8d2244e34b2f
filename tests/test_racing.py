"""The policy of examples/racing.py: its features match the picture, and it is symmetric."""

import gymnasium
import numpy as np
import pytest
import torch
from tests.examples import load

PAIRS, WHEEL_BAR, TURN_BAR, ASIDE = range(5), 5, 6, 7
AHEAD, SPEED, HARD, LOST = 1, 7, 8, 9


@pytest.fixture(scope="module")
def example():
    return load("racing")


def seen(example, picture, wheel=None, pedal=None):
    """Return one feature of a picture of shape (rows, columns, colors)."""
    policy = example.driver((3, 96, 96), 3)
    with torch.no_grad():
        if wheel is not None:
            policy.wheel[wheel] = 1.0
        if pedal is not None:
            policy.pedal[pedal] = 1.0
        given = policy(torch.tensor(picture.copy()).permute(2, 0, 1)[None] / 255.0)[0]
    return given[0].item() if wheel is not None else (given[1] - given[2]).item()


def drawn(steps, action):
    """Return the picture after a car has driven some steps on its first straight."""
    pytest.importorskip("Box2D")
    env = gymnasium.make("CarRacing-v3")
    picture, _ = env.reset(seed=1)
    for _ in range(steps):
        picture = env.step(np.array(action, np.float32))[0]
    env.close()
    return picture


def test_an_untrained_policy_outputs_zero(example):
    picture = torch.rand(2, 3, 96, 96)
    assert not example.driver((3, 96, 96), 3)(picture).any()


def test_a_mirrored_road_mirrors_the_steering(example):
    torch.manual_seed(0)
    policy = example.driver((3, 96, 96), 3)
    torch.nn.init.normal_(policy.wheel)
    torch.nn.init.normal_(policy.pedal)
    picture = drawn(60, (0, 0.5, 0)).copy()
    picture[: example.BOARD] = np.roll(picture[: example.BOARD], 6, axis=1)  # the car is not in the middle
    picture[example.BOARD :, example.SPEED[1] :] = 0  # the bars are not centered
    mirrored = picture.copy()
    mirrored[: example.BOARD] = picture[: example.BOARD, ::-1]
    both = torch.tensor(np.stack([picture, mirrored])).permute(0, 3, 1, 2) / 255.0
    first, second = policy(both).detach().numpy()
    assert abs(first[0]) > 0.05
    np.testing.assert_allclose(second, first * [-1, 1, 1], atol=0.1)  # the road's edges fall between pixels


def test_features_respond_to_road_grass_speed_and_steering(example):
    slow, fast = drawn(1, (0, 0.5, 0)), drawn(60, (0, 0.5, 0))
    assert seen(example, slow, pedal=SPEED) < 0.1 < seen(example, fast, pedal=SPEED)
    assert seen(example, fast, pedal=AHEAD) > 0.9
    assert seen(example, fast, pedal=LOST) == 0
    grass = fast.copy()
    grass[: example.BOARD] = (102, 204, 102)
    assert seen(example, grass, pedal=LOST) == 1
    assert seen(example, grass, pedal=AHEAD) == 0
    for side in (-1, 1):
        half = grass.copy()
        half[: example.BOARD, slice(48, None) if side > 0 else slice(0, 48)] = 105
        assert seen(example, half, wheel=ASIDE) == side
        assert side * seen(example, half, wheel=PAIRS[4]) > 0.9
        turned = drawn(30, (0.5 * side, 0.3, 0))
        assert side * seen(example, turned, wheel=WHEEL_BAR) > 0.1
        assert side * seen(example, turned, wheel=TURN_BAR) > 0.1
