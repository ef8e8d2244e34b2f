"""Plain layers: ``linear`` has one, ``mlp`` has the hidden ones that are asked for."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from escalade.policies.architectures.shape import Request


def make_linear(request: Request) -> nn.Module:
    """One layer, without an activation."""
    return nn.Sequential(nn.Linear(request.inputs, request.outputs, bias=request.bias))


def make_mlp(request: Request) -> nn.Module:
    """A multilayer perceptron; images are flattened before it."""
    layers: list[nn.Module] = []
    for before, after in pairwise([request.inputs, *request.hidden]):
        layers += [nn.Linear(before, after, bias=request.bias), request.activation()]
    last = [request.inputs, *request.hidden][-1]
    return nn.Sequential(*layers, nn.Linear(last, request.outputs, bias=request.bias))
