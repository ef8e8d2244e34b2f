"""CarRacing-v3 from its picture within half an hour of one core: a linear policy that sees the road.

    python examples/racing.py [SECONDS [SEED]]

Of the 27,648 numbers of a picture it looks at few: in eleven directions how far the road goes, on which
side there is more of it, whether the car is on it, and what the board below says of speed, wheel and turn.
Where the road is mirrored, so is the wheel. CMA-ES learns the 26 numbers from nothing.

EnvPool draws its car eight times as fast as Gymnasium, so that one is learned on. In this folder
``escalade eval RUN --backend gymnasium`` drives Gymnasium's, and ``escalade render RUN`` films it.
"""

import sys

import torch
from torch import Tensor, nn

import escalade

SIZE, BOARD = 96, 84  # of the picture; the row where the board begins
CAR = (67, 47.5)  # its nose: row and column
ANGLES = (0, 8, 16, 28, 45, 70)  # degrees from straight ahead, to the right and to the left
REACH, STEP = 66, 2  # pixels
GREEN = 0.15  # more green than red: grass
# Columns of the board: the speed's bar, where those of wheel and turn begin and how far they reach.
SPEED, WHEEL, TURN = (11, 16), (48, 18), (72, 22)


def places() -> Tensor:
    """The pixels that each direction looks at, in the flat picture, the nearest first: shape (11, 33)."""
    angles = torch.deg2rad(torch.tensor([*ANGLES, *(-angle for angle in ANGLES[1:])]))[:, None]
    far = torch.arange(STEP, REACH + 1, STEP)
    rows = (CAR[0] - far * torch.cos(angles)).round().long().clamp(0, BOARD - 1)
    columns = (CAR[1] + far * torch.sin(angles)).round().long().clamp(0, SIZE - 1)
    return rows * SIZE + columns


PLACES = places()


class Driver(nn.Module):
    """Wheel, gas and brake from pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.wheel = nn.Parameter(torch.zeros(16, 1))
        self.pedal = nn.Parameter(torch.zeros(10, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        """Actions (n, 3) from pictures (n, 3, 96, 96) of numbers from 0 to 1."""
        road = (pictures[:, 1] - pictures[:, 0] < GREEN).float()
        free = road.flatten(1)[:, PLACES].cumprod(dim=2).mean(dim=2)
        ahead, right, left = free[:, :1], free[:, 1:6], free[:, 6:]
        aside = right_less_left(road[:, 20:BOARD], SIZE // 2, SIZE // 2)
        lost = 1 - road[:, 60:66, 42:54].mean(dim=(1, 2))[:, None]
        red, green, _ = pictures[:, :, BOARD:].unbind(dim=1)
        speed = 3 * pictures[:, :, BOARD:, SPEED[0] : SPEED[1]].mean(dim=(1, 2, 3))[:, None]
        bars = [10 * right_less_left(green, *WHEEL), 10 * right_less_left(red, *TURN)]
        turned = torch.cat([right - left, *bars, aside], dim=1)  # what a mirror negates
        wheel = torch.cat([turned, turned * speed], dim=1) @ self.wheel
        hard = wheel.abs().clamp(max=1)
        kept = torch.cat([torch.ones_like(ahead), ahead, right + left, speed, hard, lost], dim=1)
        pedal = kept @ self.pedal
        return torch.cat([wheel, pedal.clamp(min=0), (-pedal).clamp(min=0)], dim=1)


def right_less_left(pixels: Tensor, middle: int, wide: int) -> Tensor:
    """The mean right of a column less that left of it, (n, 1), of pixels (n, rows, columns)."""
    right = pixels[:, :, middle : middle + wide].mean(dim=(1, 2))
    return (right - pixels[:, :, middle - wide : middle].mean(dim=(1, 2)))[:, None]


def driver(inputs: tuple[int, ...], outputs: int) -> Driver:
    """The policy of the run."""
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
        episode_seeds="generation",  # all members drive on the same track, which differs more than they do
        cutoff=125,  # half of an episode of 1,000 frames
        eval_every=5,
        eval_episodes=8,
        target_return=900.0,
        seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 1800,
        seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
    print(f"return {run.summary['best_return']} of the best evaluation")
