"""ClipUp alone: algorithm 2 of its paper, step by step."""

import pytest
import torch

from escalade.errors import InputError
from escalade.strategies import ClipUp


def test_first_step_has_length_lr_for_any_gradient():
    for size in (1e-6, 1.0, 1e6):
        optimizer = ClipUp([torch.ones(2)])
        optimizer.step(size * torch.tensor([3.0, 4.0]), lr=0.5)
        torch.testing.assert_close(optimizer.center, torch.tensor([1 - 0.3, 1 - 0.4]))


def test_speed_rises_with_momentum_up_to_its_limit():
    optimizer = ClipUp([torch.zeros(1)], momentum=0.5, max_speed=0.16)
    places = []
    for _ in range(4):
        optimizer.step(torch.tensor([-7.0]), lr=0.1)
        places.append(optimizer.center.item())
    assert places == pytest.approx([0.1, 0.25, 0.41, 0.57])


def test_default_max_speed_is_twice_lr_and_follows_it():
    optimizer = ClipUp([torch.zeros(1)])
    for _ in range(50):
        optimizer.step(torch.ones(1), lr=0.1)
    before = optimizer.center.item()
    optimizer.step(torch.ones(1), lr=0.01)
    assert before - optimizer.center.item() == pytest.approx(0.02, rel=1e-4)


def test_zero_gradient_only_slows_down():
    optimizer = ClipUp([torch.zeros(2)], momentum=0.5)
    optimizer.step(torch.zeros(2), lr=1.0)
    assert optimizer.center.tolist() == [0.0, 0.0]
    optimizer.step(torch.tensor([1.0, 0.0]), lr=1.0)
    optimizer.step(torch.zeros(2), lr=1.0)
    assert optimizer.center.tolist() == [-1.5, 0.0]


@pytest.mark.parametrize("scale", [1e-42, 1e-24, 1e-20, 1.0, 1e19, 1e38])
def test_only_the_direction_of_the_gradient_matters(scale):
    optimizer = ClipUp([torch.zeros(2)])
    optimizer.step(torch.tensor([0.6, 0.8]) * scale, lr=1.0)
    assert optimizer.center.tolist() == pytest.approx(
        [-0.6, -0.8], rel=1e-2
    )  # 1e-42 is subnormal, with ten significant bits


@pytest.mark.parametrize(
    "keywords",
    [
        {"lr": 0.0},
        {"lr": -1.0},
        {"lr": float("nan")},
        {"momentum": 1.0},
        {"momentum": -0.1},
        {"max_speed": 0.0},
    ],
)
def test_invalid_settings_are_rejected(keywords):
    with pytest.raises(InputError, match=next(iter(keywords))):
        ClipUp([torch.zeros(1)], **keywords)
