"""LES, the learned evolution strategy: Lange, Schaul, Chen, Zahavy, Dalibard, Lu, Singh and Flennerhag 2023,
"Discovering evolution strategies via meta-black-box optimization", arXiv 2211.11260, section 3.

The weights of its two networks, les.safetensors, are those that R. T. Lange trained and published under the
Apache License 2.0 with evosax 0.3.2 (2023_10_les_v2.pkl); they are not those of the paper's own experiments.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file
from torch import Tensor

from escalade.strategies.base import Common, Fitness
from escalade.strategies.gaussian import AdaptiveStrategy, Deviations
from escalade.strategies.ranking import ranks
from escalade.strategies.tensors import Start

_WEIGHTS = Path(__file__).with_suffix(".safetensors")
_PATH_RATES = (0.1, 0.5, 0.9)
_TIMES = np.array([1, 3, 10, 30, 50, 100, 250, 500, 750, 1000, 1250, 1500, 2000])
_LEAST = 1e-8  # variance

Array = NDArray[np.float64]
Layers = dict[str, tuple[Array, Array]]


class LES(AdaptiveStrategy):
    """Have networks that were learned on other tasks weigh the members, and set each parameter's step sizes.

    Members are ``centre + sigma * s_i``. Attention among them makes the weights ``w_i``, whose sum is 1, from
    three features of each fitness: its rank, its z-score, and whether it is the best ever. From how far the
    weighted mean moved lately, in averages over three horizons, and from the generation's number another
    network makes two rates in (0, 1) for each parameter:

        ``centre += rate_1 * sigma * sum_i w_i * s_i``
        ``sigma += rate_2 * (sqrt(sigma**2 * sum_i w_i * s_i**2 + 1e-8) - sigma)``

    There is nothing to set but population and sigma. The networks know absolute lengths: parameters of which
    a tenth is a large step, or 100 a small one, are not what they were trained on.

    Args:
        x0: the first centre, shape (dimension,).
        population: members a generation.
        sigma: the first deviations: a positive number, or a vector of shape (dimension,).
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is impossible; the message names it.
    """

    adapted = ("paths", "record")
    antithetic = False
    compares_generations = True

    def __init__(
        self, x0: Start, population: int = 64, sigma: Deviations = 0.1, **common: Unpack[Common]
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        self.paths: Tensor = self.center.new_zeros(self.dimension, 2 * len(_PATH_RATES))
        """Averages of the centre's wish to move over each horizon, and of the same in units of sigma."""
        self.record = -math.inf  # the best fitness before this generation

    def update(self, fitness: Fitness) -> None:
        weights = member_weights(fitness, self.record)
        step, squares = self.noise_sum(weights), self.square_sum(weights)
        moves = torch.stack([self.deviations * step] * len(_PATH_RATES) + [step] * len(_PATH_RATES), dim=1)
        self.paths = self.paths + self.paths.new_tensor(_PATH_RATES * 2) * (moves - self.paths)
        rates = self._rates()
        spread = torch.sqrt(self.deviations.square() * squares + _LEAST)
        self.center += rates["center"] * self.deviations * step
        self.deviations = self.deviations + rates["deviations"] * (spread - self.deviations)
        self.remember(fitness)

    def remember(self, fitness: Fitness) -> None:
        self.record = max(self.record, float(fitness.max()))

    def _rates(self) -> dict[str, Tensor]:
        """Rates in (0, 1) of the centre and of the deviations, each of shape (dimension,)."""
        (weight, bias), count = layers()["hidden"], self.paths.shape[1]
        # The generation's number is the same for all parameters: its share of the sum is made once.
        shared = np.tanh(self.generation / _TIMES - 1) @ weight[count:] + bias
        own, shared_by_all = (torch.from_numpy(part).to(self.paths) for part in (weight[:count], shared))
        hidden = torch.relu(self.paths @ own + shared_by_all)
        found = {}
        for name in ("center", "deviations"):
            out, offset = layers()[name]
            found[name] = torch.sigmoid(hidden @ torch.from_numpy(out[:, 0]).to(hidden) + float(offset[0]))
        return found


def member_weights(fitness: Fitness, record: float) -> Array:
    """Weights of the members, shape (population,), by attention of each to all (the paper's section 3)."""
    n = len(fitness)
    losses = -fitness
    scores = (losses - losses.mean()) / (losses.std() + 1e-10)
    features = np.stack([fitness > record, ranks(losses) / (n - 1) - 0.5, scores], axis=1)
    seen = [layers()[name] for name in ("keys", "queries", "values")]
    keys, queries, values = (features @ weight + bias for weight, bias in seen)
    return softmax((softmax(queries @ keys.T / math.sqrt(n)) @ values)[:, 0])


def softmax(x: Array) -> Array:
    """Softmax along the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


@cache
def layers() -> Layers:
    """The networks' layers by name: each has a weight, shape (inputs, outputs), and a bias, float64."""
    read = load_file(_WEIGHTS)
    names = {name.partition(".")[0] for name in read}
    return {
        name: (read[f"{name}.weight"].astype(np.float64), read[f"{name}.bias"].astype(np.float64))
        for name in names
    }
