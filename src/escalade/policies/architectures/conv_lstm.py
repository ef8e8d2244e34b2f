"""The recurrent Atari network of pytorch-es: four convolutions and an LSTM cell."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from escalade.policies.architectures.shape import Request, flat_size
from escalade.policies.modules import Chain


def make(request: Request) -> nn.Module:
    """3 x 3 convolutions of stride 2 and 32 channels, SELU, LSTM of 256; made for images of 1 x 42 x 42."""
    body: list[nn.Module] = []
    for before, after in pairwise([request.shape[0], 32, 32, 32, 32]):
        body += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.SELU()]
    body.append(nn.Flatten())
    cell = nn.LSTMCell(flat_size(body, request.shape), 256)
    return Chain(*body, cell, nn.Linear(256, request.outputs))
