"""A policy that is quadratic in what it sees: one layer on the observation and products of its numbers.

A torque is often such a product: what moves the tip of an arm towards a goal is the way there times sines and
cosines of the joints' angles. A linear policy cannot say it; a hidden layer has to find it.
"""

from __future__ import annotations

from torch import nn

from escalade.errors import InputError
from escalade.policies.architectures.shape import Request
from escalade.policies.modules import Products
from escalade.policies.population.products import product_count

_MOST = 10_000_000  # parameters; a search through more of them learns nothing in any time


def make(request: Request) -> nn.Module:
    """One layer without an activation behind :class:`escalade.policies.modules.Products`.

    Raises:
        InputError: the observations are images, or have so many numbers that their pairs are too many.
    """
    if len(request.shape) == 3:
        raise InputError("`policy` quadratic is for vectors, and the observations are images: use nature")
    if (parameters := product_count(request.inputs) * request.outputs) > _MOST:
        raise InputError(
            f"`policy` quadratic would have {parameters:,} parameters for observations of {request.inputs:,} "
            f"numbers, and at most {_MOST:,} are of use: take linear or mlp"
        )
    layer = nn.Linear(product_count(request.inputs), request.outputs, bias=request.bias)
    return nn.Sequential(Products(request.inputs), layer)
