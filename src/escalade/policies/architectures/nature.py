"""The network of deep Q-learning on Atari: Mnih et al. 2015, "Human-level control through deep
reinforcement learning", methods, "Model architecture".
"""

from __future__ import annotations

from torch import nn

from escalade.policies.architectures.shape import Request, flat_size


def make(request: Request) -> nn.Module:
    """Three convolutions and a hidden layer of 512, all ReLU; made for images of 4 x 84 x 84."""
    body = [
        nn.Conv2d(request.shape[0], 32, 8, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(),
        nn.Flatten(),
    ]
    size = flat_size(body, request.shape)
    return nn.Sequential(*body, nn.Linear(size, 512), nn.ReLU(), nn.Linear(512, request.outputs))
