"""The Atari network of Salimans et al. 2017, with virtual batch normalisation (arXiv 1703.03864).

The layers are those of Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning".
"""

from __future__ import annotations

from torch import nn

from escalade.policies.architectures.shape import Request, flat_size
from escalade.policies.modules import Chain, VirtualBatchNorm


def make(request: Request) -> nn.Module:
    """Two convolutions and a hidden layer of 256, all normalised, then ReLU; for images of 4 x 84 x 84."""
    first = nn.Conv2d(request.shape[0], 16, 8, stride=4, bias=False)
    second = nn.Conv2d(16, 32, 4, stride=2, bias=False)
    size = flat_size([first, second], request.shape)
    return Chain(
        first,
        VirtualBatchNorm(16),
        nn.ReLU(),
        second,
        VirtualBatchNorm(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(size, 256, bias=False),
        VirtualBatchNorm(256),
        nn.ReLU(),
        nn.Linear(256, request.outputs),
        reference_shape=request.shape,
    )
