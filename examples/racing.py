"""CarRacing-v3 from images within half an hour on one core, with a linear policy of few image features.

    python examples/racing.py [SECONDS [SEED]]

The policy extracts a few features from the 27,648 numbers of an image: the length of the road in eleven
directions, the side with more road, whether the car is on the road, and speed, wheel and turn from the board
below. For a mirrored road it mirrors the wheel. CMA-ES learns its 26 parameters, starting from zero.

Training uses EnvPool, which renders its car eight times as fast as Gymnasium. Run
``escalade eval RUN --backend gymnasium`` in this folder to drive Gymnasium's car, and ``escalade render RUN``
to film it.
"""

import sys

import torch
from torch import Tensor, nn

import escalade

SIZE, BOARD = 96, 84  # size of the image, and first row of the board
CAR = (67, 47.5)  # row and column of its nose
ANGLES = (0, 8, 16, 28, 45, 70)  # degrees from straight ahead, to the right and to the left
REACH, STEP = 66, 2  # pixels
GREEN = 0.15  # a pixel with this much more green than red is grass
# Columns of the board: first and last of the speed bar; middle and half width of the wheel and turn bars.
SPEED, WHEEL, TURN = (11, 16), (48, 18), (72, 22)


def places() -> Tensor:
    """Return the pixels along each direction as indices of the flat image, nearest first, shape (11, 33)."""
    angles = torch.deg2rad(torch.tensor([*ANGLES, *(-angle for angle in ANGLES[1:])]))[:, None]
    far = torch.arange(STEP, REACH + 1, STEP)
    rows = (CAR[0] - far * torch.cos(angles)).round().long().clamp(0, BOARD - 1)
    columns = (CAR[1] + far * torch.sin(angles)).round().long().clamp(0, SIZE - 1)
    return rows * SIZE + columns


PLACES = places()


class Driver(nn.Module):
    """Policy from images to wheel, gas and brake."""

    def __init__(self) -> None:
        super().__init__()
        self.wheel = nn.Parameter(torch.zeros(16, 1))
        self.pedal = nn.Parameter(torch.zeros(10, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        """Return actions (n, 3) for images (n, 3, 96, 96) of numbers from 0 to 1."""
        road = (pictures[:, 1] - pictures[:, 0] < GREEN).float()
        free = road.flatten(1)[:, PLACES].cumprod(dim=2).mean(dim=2)
        ahead, right, left = free[:, :1], free[:, 1:6], free[:, 6:]
        aside = right_less_left(road[:, 20:BOARD], SIZE // 2, SIZE // 2)
        lost = 1 - road[:, 60:66, 42:54].mean(dim=(1, 2))[:, None]
        red, green, _ = pictures[:, :, BOARD:].unbind(dim=1)
        speed = 3 * pictures[:, :, BOARD:, SPEED[0] : SPEED[1]].mean(dim=(1, 2, 3))[:, None]
        bars = [10 * right_less_left(green, *WHEEL), 10 * right_less_left(red, *TURN)]
        negated = torch.cat([right - left, *bars, aside], dim=1)  # negated by mirroring
        wheel = torch.cat([negated, negated * speed], dim=1) @ self.wheel
        hard = wheel.abs().clamp(max=1)
        unchanged = torch.cat([torch.ones_like(ahead), ahead, right + left, speed, hard, lost], dim=1)
        pedal = unchanged @ self.pedal
        return torch.cat([wheel, pedal.clamp(min=0), (-pedal).clamp(min=0)], dim=1)


def right_less_left(pixels: Tensor, middle: int, wide: int) -> Tensor:
    """Return the mean right of a column minus the mean left of it, (n, 1), of pixels (n, rows, columns)."""
    right = pixels[:, :, middle : middle + wide].mean(dim=(1, 2))
    return (right - pixels[:, :, middle - wide : middle].mean(dim=(1, 2)))[:, None]


def driver(inputs: tuple[int, ...], outputs: int) -> Driver:
    """Create the policy."""
    return Driver()


if __name__ == "__main__":
    run = escalade.train(
        "CarRacing-v3",
        preset=None,
        backend="envpool",
        policy="racing:driver",
        frame_skip=4,
        strategy="cma-es",
        population=24,
        sigma=0.3,
        episode_seeds="generation",  # the same track for all members, because tracks differ more than members
        cutoff=125,  # half of an episode of 1,000 frames
        eval_every=5,
        eval_episodes=8,
        target_return=900.0,
        seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 1800,
        seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
    print(f"return {run.summary['best_return']} of the best evaluation")
