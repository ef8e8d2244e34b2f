"""Networks for vectors: linear, multilayer perceptron, quadratic, and a cell behind plain layers."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from escalade.errors import InputError
from escalade.policies.architectures.registry import CELL, Request
from escalade.policies.modules import Chain, Products
from escalade.policies.population.layers import product_count

_MOST = 10_000_000  # parameters; with more, a search learns nothing in reasonable time


def make_linear(request: Request) -> nn.Module:
    """Build one layer without an activation."""
    return nn.Sequential(nn.Linear(request.inputs, request.outputs, bias=request.bias))


def make_mlp(request: Request) -> nn.Module:
    """Build a multilayer perceptron, which takes images flattened."""
    sizes = [request.inputs, *request.hidden]
    layers = _hidden_layers(sizes, request)
    return nn.Sequential(*layers, nn.Linear(sizes[-1], request.outputs, bias=request.bias))


def make_quadratic(request: Request) -> nn.Module:
    """Build one layer without an activation after :class:`escalade.policies.modules.Products`.

    A torque is often a product of two numbers: the distance to a goal times sines and cosines of the joints'
    angles. A linear policy has no products, and a hidden layer would have to learn them.

    Raises:
        InputError: the observations are images, or have too many pairs of numbers.
    """
    if len(request.shape) == 3:
        raise InputError("`policy` quadratic is for vectors, but the observations are images; use nature")
    if (parameters := product_count(request.inputs) * request.outputs) > _MOST:
        raise InputError(
            f"`policy` quadratic would have {parameters:,} parameters for observations of {request.inputs:,} "
            f"numbers, more than the limit of {_MOST:,}; use linear or mlp"
        )
    layer = nn.Linear(product_count(request.inputs), request.outputs, bias=request.bias)
    return nn.Sequential(Products(request.inputs), layer)


def make_gru(request: Request) -> nn.Module:
    """Build a GRU cell; see :func:`make_lstm`."""
    return _behind_layers(nn.GRUCell, request)


def make_lstm(request: Request) -> nn.Module:
    """Build an LSTM cell of the last hidden size (default 64), after linear layers of the sizes before it."""
    return _behind_layers(nn.LSTMCell, request)


def _behind_layers(kind: type[nn.GRUCell] | type[nn.LSTMCell], request: Request) -> nn.Module:
    *sizes, last = [request.inputs, *(request.hidden or CELL)]
    layers = _hidden_layers(sizes, request)
    cell = kind(sizes[-1], last, bias=request.bias)
    return Chain(*layers, cell, nn.Linear(last, request.outputs, bias=request.bias))


def _hidden_layers(sizes: list[int], request: Request) -> list[nn.Module]:
    """Return linear layers of these sizes, each followed by the activation."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after, bias=request.bias), request.activation()]
    return layers
