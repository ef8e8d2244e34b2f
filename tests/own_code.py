"""User code named on the command line: factories of networks, valid and invalid."""

import torch
from torch import nn


class Features(nn.Module):
    """Trains a readout of frozen random features; a buffer shifts the observations."""

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


class Leaky(nn.Module):
    """A stateful module: a leaky sum of observations, in a nested state.

    The initial state depends on the seed and on a parameter, so it differs between members too.
    """

    def __init__(self, inputs, outputs):
        super().__init__()
        self.start = nn.Parameter(torch.rand(inputs))
        self.read = nn.Linear(2 * inputs + 1, outputs)
        self.norm = nn.LayerNorm(inputs)

    def initial_state(self, seed):
        drawn = torch.rand(len(self.start), generator=torch.Generator().manual_seed(seed))
        return {"sum": self.start + drawn, "count": (torch.zeros((), dtype=torch.int64), [torch.ones(1)])}

    def forward(self, observations, state):
        total = 0.9 * state["sum"] + self.norm(observations)
        count, [decay] = state["count"]
        seen = torch.cat([observations, torch.tanh(total), decay * count[:, None]], dim=1)
        return self.read(seen), {"sum": total, "count": (count + 1, [0.7 * decay])}


def negated(inputs, outputs):
    return Negated(nn.Linear(inputs, outputs))


def raises(inputs, outputs):
    raise LookupError("no weights for this robot")


number = 3
