"""A soft walker in torch: masses, springs and muscles on flat ground, in the plane."""

from __future__ import annotations

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from escalade.wings.worlds.classic import TorchWorld

_CORNERS = ((-0.4, 0.9), (0.4, 0.9), (-0.4, 0.5), (0.4, 0.5))  # of the body: x and y, in meters
_FEET = ((-0.4, 0.0), (0.4, 0.0))
_BODY = ((0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2))  # springs between masses
_MUSCLES = ((4, 2), (4, 3), (5, 2), (5, 3))  # from each foot to both lower corners
_POSTURE = np.array((*_CORNERS, *_FEET))
_SPRINGS = np.array((*_BODY, *_MUSCLES))
_LENGTHS = np.linalg.norm(_POSTURE[_SPRINGS[:, 0]] - _POSTURE[_SPRINGS[:, 1]], axis=1)
_WIDTH, _HEIGHT, _PIXELS = 4.0, 1.8, 100  # of a picture, in meters; pixels of a meter


def _pulls() -> list[list[int]]:
    """Return the springs that pull each mass: k is spring k at its first end, k + S at its second of S.

    The lists have one length. They are filled up with 2 S, which pulls with no force.
    """
    count = len(_SPRINGS)
    lists = [
        [k + count * end for k, ends in enumerate(_SPRINGS) for end in (0, 1) if ends[end] == mass]
        for mass in range(len(_POSTURE))
    ]
    most = max(map(len, lists))
    return [one + [2 * count] * (most - len(one)) for one in lists]


class SpringWalker(TorchWorld):
    """Walk with a body of four masses on two feet, which four muscles move.

    Masses of 1 kg are joined by springs with damping. Four springs are muscles: actions in [-1, 1] change
    their length by up to 30 %. The ground is a stiff spring with Coulomb friction. Observations are masses'
    positions, those along the ground relative to the body, and their velocities. The return is the distance
    walked in meters. The episode ends if the body touches the ground, or after ten seconds.
    """

    max_episode_steps, render_fps = 300, 30
    single_observation_space = spaces.Box(-np.inf, np.inf, (4 * len(_POSTURE),))
    single_action_space = spaces.Box(-1.0, 1.0, (len(_MUSCLES),))
    _SECONDS, _SUBSTEPS = 1 / 300, 10
    _GRAVITY, _STIFF, _DAMPING, _REACH = 9.81, 1000.0, 6.0, 0.3
    _GROUND, _GROUND_DAMPING, _FRICTION = 5000.0, 30.0, 0.9

    def __init__(self, num_envs: int, device: torch.device | str = "cpu") -> None:
        super().__init__(num_envs, device)
        self._ends = torch.tensor(_SPRINGS.T.copy(), device=self.device)
        self._pulls = torch.tensor(_pulls(), device=self.device).T.contiguous()
        self._lengths = torch.tensor(_LENGTHS, dtype=torch.float32, device=self.device)[None]
        self._posture = torch.tensor(_POSTURE.T.copy(), dtype=torch.float32, device=self.device)

    def first(self) -> Tensor:
        """Return the upright posture, with positions and velocities changed by up to 0.02."""
        changed = 0.04 * self.random(4 * len(_POSTURE)) - 0.02
        changed[:, : 2 * len(_POSTURE)] += self._posture.flatten()
        return changed

    def advance(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the meters walked in this step. The masses move in ten semi-implicit Euler steps."""
        places, speeds = self._parts()
        before = places[:, 0].sum(-1)
        lengths = self._lengths.repeat(len(actions), 1)
        lengths[:, len(_BODY) :] *= 1 + self._REACH * actions.clamp(-1, 1)
        for _ in range(self._SUBSTEPS):
            speeds = self._on_ground(places, speeds + self._SECONDS * self._forces(places, speeds, lengths))
            places = places + self._SECONDS * speeds
        self.state = torch.cat((places.flatten(1), speeds.flatten(1)), dim=-1)
        walked = (places[:, 0].sum(-1) - before) / len(_POSTURE)
        return walked, (places[:, 1, : len(_CORNERS)] < 0).any(-1)

    def observe(self) -> Tensor:
        """Return positions, those along the ground relative to the body, and velocities."""
        seen, body = self.state.clone(), self.state[:, : len(_CORNERS)]
        seen[:, : len(_POSTURE)] -= (body[:, 0] + body[:, 1] + body[:, 2] + body[:, 3])[:, None] / 4
        return seen

    def render(self) -> Tensor:
        """Return an image of the first row, shape (height, width, 3). It follows the body."""
        places = self._parts()[0][0].to("cpu", torch.float64)
        left = float(places[0].mean()) - _WIDTH / 2
        across = left + (torch.arange(round(_WIDTH * _PIXELS), dtype=torch.float64) + 0.5) / _PIXELS
        up = _HEIGHT - 0.3 - (torch.arange(round(_HEIGHT * _PIXELS), dtype=torch.float64) + 0.5) / _PIXELS
        image = torch.full((len(up), len(across), 3), 0.97, dtype=torch.float64)
        image[up < 0] = 0.62
        image[(up < 0)[:, None] & (torch.remainder(across, 1) < 0.03)] = 0.3  # a mark at every meter
        for spring, (one, other) in enumerate(_SPRINGS):
            start, along = places[:, one], places[:, other] - places[:, one]
            x, y = across - start[0], (up - start[1])[:, None]
            share = ((x * along[0] + y * along[1]) / along.square().sum()).clamp(0, 1)
            distance = torch.hypot(x - share * along[0], y - share * along[1])
            ink = (1.5 - (distance - 0.02) * _PIXELS).clamp(0, 1)[..., None]
            color = torch.tensor((0.80, 0.25, 0.20) if spring >= len(_BODY) else (0.15, 0.25, 0.45))
            image = image * (1 - ink) + color * ink
        return (image * 255).to(torch.uint8)

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Return positions and velocities, shape (num_envs, 2, masses) each."""
        places, speeds = self.state.reshape(-1, 2, 2, len(_POSTURE)).unbind(1)
        return places, speeds

    def _forces(self, places: Tensor, speeds: Tensor, lengths: Tensor) -> Tensor:
        """Return the forces of springs and gravity on the masses, of 1 kg each."""
        first, second = self._ends
        along = places[..., second] - places[..., first]
        length = (along[:, 0].square() + along[:, 1].square()).sqrt()
        along = along / length[:, None]
        change = (speeds[..., second] - speeds[..., first]) * along
        tension = self._STIFF * (length - lengths) + self._DAMPING * (change[:, 0] + change[:, 1])
        pull = along * tension[:, None]
        pulls = torch.cat((pull, -pull, torch.zeros_like(pull[..., :1])), dim=-1)
        forces = pulls[..., self._pulls[0]]  # one addition after another: bit-identical in every batch
        for index in self._pulls[1:]:
            forces = forces + pulls[..., index]
        forces[:, 1] -= self._GRAVITY
        return forces

    def _on_ground(self, places: Tensor, speeds: Tensor) -> Tensor:
        """Return the velocities of the masses after the ground's forces on those below its surface."""
        along, up = speeds.unbind(1)
        depth = (-places[:, 1]).clamp(min=0)
        push = (self._GROUND * depth - self._GROUND_DAMPING * up * (depth > 0)).clamp(min=0) * self._SECONDS
        grip = self._FRICTION * push
        along = along - along.clamp(-grip, grip)  # friction stops a mass at most
        return torch.stack((along, up + push), dim=1)
