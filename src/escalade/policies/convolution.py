"""Convolutions and pooling of a population: images with their channels last, member by member.

A member's convolution is one copy of the image's patches into a matrix that stays in the cache, and
one matrix product in BLAS. benchmarks/convolutions.md compares this with grouped convolutions and others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escalade.policies.activations import ACTIVATIONS, Array
from escalade.policies.layers import Operation, Shape, block

Pair = tuple[int, int]


@dataclass(frozen=True)
class Convolution:
    """A two-dimensional convolution and the activation that follows it.

    The flat vector holds the weight as torch does, (filters, channels, height, width), then the bias.
    """

    inputs: Shape
    filters: int
    kernel: Pair
    stride: Pair
    padding: Pair
    bias: bool
    activation: str | None = None

    @property
    def outputs(self) -> Shape:
        """Height, width and filters of the image that it makes."""
        across = zip(self.inputs, self.padding, self.kernel, self.stride, strict=False)
        height, width = ((size + 2 * edge - part) // step + 1 for size, edge, part, step in across)
        return height, width, self.filters

    @property
    def size(self) -> int:
        """Number of parameters."""
        weights = self.filters * self.inputs[2] * self.kernel[0] * self.kernel[1]
        return weights + self.bias * self.filters

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        return _ConvolutionOperation(self, rows)


class _ConvolutionOperation(Operation):
    def __init__(self, layer: Convolution, rows: int) -> None:
        height, width, channels = layer.inputs
        (tall, wide), (down, across), (top, left) = layer.kernel, layer.stride, layer.padding
        high, long, filters = layer.outputs
        self._weight = block(rows, tall * wide * channels, filters)
        self._bias = block(rows, filters) if layer.bias else None
        super().__init__([self._weight] if self._bias is None else [self._weight, self._bias])
        self._torch_shape = (filters, channels, tall, wide)
        padded = block(height + 2 * top, width + 2 * left, channels)
        self._image = padded[top : top + height, left : left + width]
        step, line, item = padded.strides[0], padded.strides[1], padded.strides[2]
        # The pixels of a patch's line lie beside each other: one run of wide * channels numbers.
        self._windows = np.lib.stride_tricks.as_strided(
            padded, (high, long, tall, wide * channels), (step * down, line * across, step, item)
        )
        self._patches = block(high, long, tall, wide * channels)
        self._matrix = self._patches.reshape(high * long, -1)
        self._out = block(rows, high, long, filters)
        self._flat_out = self._out.reshape(rows, high * long, filters)
        self._activate = ACTIVATIONS[layer.activation] if layer.activation else None

    def load(self, row: int, parameters: Array) -> None:
        weights = self._weight[row].size
        ordered = parameters[:weights].reshape(self._torch_shape).transpose(2, 3, 1, 0)
        self._weight[row] = ordered.reshape(self._weight[row].shape)
        if self._bias is not None:
            self._bias[row] = parameters[weights:]

    def __call__(self, x: Array) -> Array:
        for row, image in enumerate(x):
            self._convolve(row, image, self._flat_out[row])
        return self._out[: len(x)]

    def each(self, row: int, batch: Array) -> Array:
        out = block(len(batch), *self._out.shape[1:])
        for image, made in zip(batch, out.reshape(len(batch), *self._flat_out.shape[1:]), strict=True):
            self._convolve(row, image, made)
        return out

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        np.copyto(self._image, image)
        np.copyto(self._patches, self._windows)
        np.matmul(self._matrix, self._weight[row], out=out)
        if self._bias is not None:
            out += self._bias[row]
        if self._activate is not None:
            self._activate(out)


@dataclass(frozen=True)
class MaxPool:
    """The largest number of each window, channel by channel; windows that do not fit are left out."""

    inputs: Shape
    kernel: Pair
    stride: Pair

    @property
    def outputs(self) -> Shape:
        """Height, width and channels of the image that it makes."""
        across = zip(self.inputs, self.kernel, self.stride, strict=False)
        height, width = ((size - part) // step + 1 for size, part, step in across)
        return height, width, self.inputs[2]

    @property
    def size(self) -> int:
        """It has no parameters."""
        return 0

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        return _MaxPoolOperation(self, rows)


class _MaxPoolOperation(Operation):
    def __init__(self, layer: MaxPool, rows: int) -> None:
        super().__init__([])
        self._layer = layer
        self._out = block(rows, *layer.outputs)

    def __call__(self, x: Array) -> Array:
        return self._pool(x, self._out[: len(x)])

    def each(self, row: int, batch: Array) -> Array:
        return self._pool(batch, block(len(batch), *self._layer.outputs))

    def _pool(self, x: Array, out: Array) -> Array:
        (tall, wide), (down, across) = self._layer.kernel, self._layer.stride
        high, long, _ = self._layer.outputs
        for top in range(tall):
            for left in range(wide):
                part = x[:, top : top + down * high : down, left : left + across * long : across]
                part = part[:, :high, :long]
                np.copyto(out, part) if top == left == 0 else np.maximum(out, part, out=out)
        return out
