"""Forward pass of small MLPs with the rows innermost: one call of numpy a layer, however many members.

BLAS needs a call for each member's product. With thousands of members whose layers have a few hundred
weights, the calls take longer than the products.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from escalade.perturbation import LowRank, NoiseSource, shared_center, write_all
from escalade.policies.activations import ACTIVATIONS, Array
from escalade.policies.population.layers import Layer
from escalade.policies.population.product import product
from escalade.policies.population.stack import Stack
from escalade.rollout.episodes import EpisodeJob
from escalade.rollout.network import Network

Numbers = NDArray[np.int64]
_MOST_WEIGHTS = 256
"""Weights of a matrix up to which this beats a call of BLAS for each member (measured with 4,096 rows)."""
_MULTIPLE = 16
"""The number of columns is a multiple of this, so that sums over one input also run along the rows."""


def make_wide(network: Network, source: NoiseSource | None) -> WideForward | None:
    """Return a forward pass for ``network``, or None unless it is an MLP of small layers with full noise."""
    if not isinstance(network, Stack) or isinstance(source, LowRank) or network.reference is not None:
        return None
    fits = all(
        _is_product(layer) and layer.inputs[0] * layer.outputs[0] <= _MOST_WEIGHTS for layer in network.layers
    )
    return WideForward(network) if fits else None


def _is_product(layer: Layer) -> bool:
    return isinstance(layer.operation, partial) and layer.operation.func is product


class WideForward:
    """Outputs of episodes, each with the parameters of its own member.

    All arrays have the rows as their last axis. A row is the same sum whatever stands beside it, so its
    outputs do not depend on the other rows.
    """

    def __init__(self, stack: Stack) -> None:
        self._layers = stack.layers
        self._dimension, self._inputs = stack.dimension, stack.inputs

    def begin(self, job: EpisodeJob) -> None:
        """Begin a generation."""
        self._job = job
        self._center = shared_center(job.population, job.center)

    def load(self, items: Numbers, seeds: Numbers) -> None:
        """Assign the rows 0, 1, ... to these items of the job."""
        job, trained = self._job, items[items < self._job.training_items]
        parameters = self._room(len(items))
        if len(trained):
            assert job.population is not None
            members, places = np.unique(trained // job.episodes + job.first_member, return_inverse=True)
            written = np.empty((len(members), self._dimension), np.float32)
            write_all(job.population, members.tolist(), written)
            parameters[:, : len(trained)] = (
                written.T if len(members) == len(trained) else written.T[:, places]
            )
        if len(trained) < len(items):
            assert self._center is not None
            parameters[:, len(trained) : len(items)] = np.asarray(self._center)[:, None]
        self._split(parameters)

    def keep(self, rows: Numbers) -> None:
        """Continue with these rows, in this order."""
        parameters, kept = self._parameters, self._room(len(rows))
        np.take(parameters, rows, axis=1, out=kept[:, : len(rows)], mode="clip")
        self._split(kept)

    def outputs(self, observations: Array) -> Array:
        """Return outputs (k, outputs) for observations (k, inputs). The next call overwrites them."""
        self._seen[:, : self._rows] = observations.T
        hidden = self._seen
        for weight, bias, out, activate in self._operations:
            np.einsum("in,ijn->jn", hidden, weight, out=out)
            if bias is not None:
                np.add(out, bias, out=out)
            if activate is not None:
                activate(out)
            hidden = out
        return hidden[:, : self._rows].T

    def _room(self, rows: int) -> Array:
        """Allocate the parameters of ``rows`` episodes, a column for each and zeros behind them."""
        self._rows, self._columns = rows, -(-rows // _MULTIPLE) * _MULTIPLE
        return np.zeros((self._dimension, self._columns), np.float32)

    def _split(self, parameters: Array) -> None:
        """Make views of each layer's parameters, and room for its outputs."""
        self._parameters = parameters
        self._seen = np.zeros((self._inputs, self._columns), np.float32)
        self._operations = []
        begin = 0
        for layer in self._layers:
            (inputs,), (outputs,) = layer.inputs, layer.outputs
            end = begin + inputs * outputs
            weight, bias = parameters[begin:end].reshape(inputs, outputs, -1), None
            if len(layer.shapes) > 1:
                begin, end = end, end + outputs
                bias = parameters[begin:end]
            begin = end
            assert isinstance(layer.operation, partial)
            name = layer.operation.keywords["activation"]
            activate = None if name is None else ACTIVATIONS[name].in_place
            self._operations.append((weight, bias, np.zeros((outputs, self._columns), np.float32), activate))
