"""Published networks for images."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from escalade.errors import InputError
from escalade.policies.architectures.registry import Request
from escalade.policies.modules import Chain, VirtualBatchNorm


def make_nature(request: Request) -> nn.Module:
    """Build three convolutions and a hidden layer of 512, all ReLU, for images of 4 x 84 x 84.

    Mnih et al. 2015, "Human-level control through deep reinforcement learning", methods.
    """
    body = [
        nn.Conv2d(request.shape[0], 32, 8, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(),
        nn.Flatten(),
    ]
    size = _flat_size(body, request.shape)
    return nn.Sequential(*body, nn.Linear(size, 512), nn.ReLU(), nn.Linear(512, request.outputs))


def make_openai_atari(request: Request) -> nn.Module:
    """Build two convolutions and a hidden layer of 256, normalized, then ReLU, for images of 4 x 84 x 84.

    Salimans et al. 2017 (arXiv 1703.03864), with the layers of Mnih et al. 2016, "Asynchronous Methods for
    Deep Reinforcement Learning".
    """
    first = nn.Conv2d(request.shape[0], 16, 8, stride=4, bias=False)
    second = nn.Conv2d(16, 32, 4, stride=2, bias=False)
    size = _flat_size([first, second], request.shape)
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


def make_conv_lstm(request: Request) -> nn.Module:
    """Build 3 x 3 convolutions of stride 2 and 32 channels, SELU, and an LSTM of 256, for 1 x 42 x 42 images.

    This is the recurrent Atari network of pytorch-es.
    """
    body: list[nn.Module] = []
    for before, after in pairwise([request.shape[0], 32, 32, 32, 32]):
        body += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.SELU()]
    body.append(nn.Flatten())
    cell = nn.LSTMCell(_flat_size(body, request.shape), 256)
    return Chain(*body, cell, nn.Linear(256, request.outputs))


def make_small_cnn(request: Request) -> nn.Module:
    """Build convolutions of 6 and 8 channels, pooled, then 128 and 64 units, all tanh, for 3 x 84 x 84.

    This is the pixel network of enajx/ES, the baseline of arXiv 2007.02686. No layer has a bias.
    """
    body = [
        nn.Conv2d(request.shape[0], 6, 3, bias=False),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 5, stride=2, bias=False),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    ]
    return nn.Sequential(
        *body,
        nn.Linear(_flat_size(body, request.shape), 128, bias=False),
        nn.Tanh(),
        nn.Linear(128, 64, bias=False),
        nn.Tanh(),
        nn.Linear(64, request.outputs, bias=False),
    )


def _flat_size(layers: list[nn.Module], shape: tuple[int, ...]) -> int:
    """Return the number of outputs of convolutions for one image of ``shape``, (C, H, W).

    Raises:
        InputError: the image is too small.
    """
    try:
        with torch.device("meta"), torch.no_grad():
            made = nn.Sequential(*layers)(torch.empty(1, *shape))
    except RuntimeError:
        channels, height, width = shape
        raise InputError(f"images of {channels} x {height} x {width} are too small for this policy") from None
    return int(made[0].numel())
