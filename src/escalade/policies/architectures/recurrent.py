"""Policies that remember: a recurrent cell behind plain layers."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from escalade.policies.architectures.registry import CELL
from escalade.policies.architectures.shape import Request
from escalade.policies.modules import Chain


def make_gru(request: Request) -> nn.Module:
    """A GRU cell; see :func:`make_lstm`."""
    return _behind_layers(nn.GRUCell, request)


def make_lstm(request: Request) -> nn.Module:
    """An LSTM cell of the last hidden size, or of 64; sizes before it are linear layers in front of it."""
    return _behind_layers(nn.LSTMCell, request)


def _behind_layers(kind: type[nn.GRUCell] | type[nn.LSTMCell], request: Request) -> nn.Module:
    *sizes, last = [request.inputs, *(request.hidden or CELL)]
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after, bias=request.bias), request.activation()]
    cell = kind(sizes[-1], last, bias=request.bias)
    return Chain(*layers, cell, nn.Linear(last, request.outputs, bias=request.bias))
