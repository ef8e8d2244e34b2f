"""A plastic network: Najarro and Risi 2020, "Meta-Learning through Hebbian Plasticity in Random Networks"
(arXiv 2007.02686). What evolves is the rule by which its weights change within the episode.
"""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from escalade.policies.architectures.shape import Request
from escalade.policies.modules import Chain, PlasticLinear


def make(request: Request) -> nn.Module:
    """Plastic layers without bias; an activation follows each but the last."""
    sizes = [request.inputs, *request.hidden, request.outputs]
    last = len(sizes) - 2
    layers = [
        PlasticLinear(before, after, number, None if number == last else request.activation())
        for number, (before, after) in enumerate(pairwise(sizes))
    ]
    return Chain(*layers)
