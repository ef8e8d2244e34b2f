"""LES, the learned evolution strategy.

Lange, Schaul, Chen, Zahavy, Dalibard, Lu, Singh and Flennerhag 2023, "Discovering evolution strategies via
meta-black-box optimization", arXiv 2211.11260, section 3.

R. T. Lange trained the weights of its two networks, les.safetensors, and published them under the Apache
License 2.0 with evosax 0.3.2 (2023_10_les_v2.pkl). They are not the weights of the paper's experiments.
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
_LEAST = 1e-8  # added variance

Array = NDArray[np.float64]
Layers = dict[str, tuple[Array, Array]]


class LES(AdaptiveStrategy):
    """Weigh the members, and set each parameter's step sizes, with networks that were trained on other tasks.

    Members are ``center + sigma * s_i``. An attention layer over the members computes their weights ``w_i``,
    whose sum is 1, from three features: the rank of the fitness, its z-score, and whether it is the best so
    far. A second network computes two rates in (0, 1) for each parameter. Its inputs are averages of the
    recent moves over three horizons, and the number of the generation:

        ``center += rate_1 * sigma * sum_i w_i * s_i``
        ``sigma += rate_2 * (sqrt(sigma**2 * sum_i w_i * s_i**2 + 1e-8) - sigma)``

    Only population and sigma can be set. The networks are sensitive to absolute scale: they were not trained
    on parameters for which 0.1 is a large step, or 100 a small one.

    Args:
        x0: initial center, shape (dimension,).
        population: members per generation.
        sigma: initial standard deviations: a positive number, or a vector of shape (dimension,).
        **common: ``seed``, ``direction`` and ``perturbation`` of :class:`Strategy`.

    Raises:
        InputError: an argument is invalid; the message names it.
    """

    adapted = ("paths", "record")
    antithetic = False
    compares_generations = True

    def __init__(
        self, x0: Start, population: int = 64, sigma: Deviations = 0.1, **common: Unpack[Common]
    ) -> None:
        super().__init__(x0, population, sigma, **common)
        self.paths: Tensor = self.center.new_zeros(self.dimension, 2 * len(_PATH_RATES))
        """Averages of the weighted mean step over each horizon, then the same in units of sigma."""
        self.record = -math.inf  # best fitness before this generation

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
        """Return the rates in (0, 1) of the center and of the deviations, each of shape (dimension,)."""
        (weight, bias), count = layers()["hidden"], self.paths.shape[1]
        # The generation's number is the same for all parameters, so its part of the sum is computed once.
        shared = np.tanh(self.generation / _TIMES - 1) @ weight[count:] + bias
        own, shared_by_all = (torch.from_numpy(part).to(self.paths) for part in (weight[:count], shared))
        hidden = torch.relu(self.paths @ own + shared_by_all)
        found = {}
        for name in ("center", "deviations"):
            out, offset = layers()[name]
            found[name] = torch.sigmoid(hidden @ torch.from_numpy(out[:, 0]).to(hidden) + float(offset[0]))
        return found


def member_weights(fitness: Fitness, record: float) -> Array:
    """Return the members' weights, shape (population,), by attention over all members (section 3)."""
    n = len(fitness)
    losses = -fitness
    scores = (losses - losses.mean()) / (losses.std() + 1e-10)
    features = np.stack([fitness > record, ranks(losses) / (n - 1) - 0.5, scores], axis=1)
    seen = [layers()[name] for name in ("keys", "queries", "values")]
    keys, queries, values = (features @ weight + bias for weight, bias in seen)
    return softmax((softmax(queries @ keys.T / math.sqrt(n)) @ values)[:, 0])


def softmax(x: Array) -> Array:
    """Return the softmax along the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


@cache
def layers() -> Layers:
    """Load the networks' layers by name: each has a weight, shape (inputs, outputs), and a bias, float64."""
    read = load_file(_WEIGHTS)
    names = {name.partition(".")[0] for name in read}
    return {
        name: (read[f"{name}.weight"].astype(np.float64), read[f"{name}.bias"].astype(np.float64))
        for name in names
    }
