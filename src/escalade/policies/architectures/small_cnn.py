"""The small network for pixels of enajx/ES, the baseline of arXiv 2007.02686: no layer has a bias."""

from __future__ import annotations

from torch import nn

from escalade.policies.architectures.shape import Request, flat_size


def make(request: Request) -> nn.Module:
    """Convolutions of 6 and 8 channels, pooled, then 128 and 64 units, all tanh; for 3 x 84 x 84."""
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
        nn.Linear(flat_size(body, request.shape), 128, bias=False),
        nn.Tanh(),
        nn.Linear(128, 64, bias=False),
        nn.Tanh(),
        nn.Linear(64, request.outputs, bias=False),
    )
