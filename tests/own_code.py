"""What users name on the command line: factories of networks, good and bad."""

import torch
from torch import nn


class Features(nn.Module):
    """Trains a readout of frozen random features; a buffer shifts what it sees."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.features = nn.Linear(inputs, 8).requires_grad_(False)
        self.register_buffer("shift", torch.rand(inputs))
        self.readout = nn.Linear(8, outputs)

    def forward(self, x):
        return self.readout(torch.tanh(self.features(x + self.shift)))


class Dropping(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 8), nn.Dropout(0.5), nn.Linear(8, outputs))

    def forward(self, x):
        return self.layers(x)


class Negated(nn.Sequential):
    def forward(self, x):
        return -super().forward(x)


def negated(inputs, outputs):
    return Negated(nn.Linear(inputs, outputs))


def raises(inputs, outputs):
    raise LookupError("no weights for this robot")


number = 3
