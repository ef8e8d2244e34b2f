"""Convolutions and pooling of a population, member by member; images are (channels, height, width).

A member's convolution is one copy of the image's patches into a matrix that stays in the cache, and
one matrix product in BLAS. benchmarks/convolutions.md compares this with grouped convolutions and others, and
with products that members share where their noise has low rank.
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
        """Filters, height and width of the image that it makes."""
        across = zip(self.inputs[1:], self.padding, self.kernel, self.stride, strict=True)
        height, width = ((size + 2 * edge - part) // step + 1 for size, edge, part, step in across)
        return self.filters, height, width

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.filters * (self.patch + self.bias)

    @property
    def patch(self) -> int:
        """Numbers of the image that one number of the result is made of."""
        return self.inputs[0] * self.kernel[0] * self.kernel[1]

    def operation(self, rows: int) -> Operation:
        """Room for ``rows`` members."""
        return _ConvolutionOperation(self, rows)


class _Patches:
    """The patches of one image as the columns of a matrix.

    A row of it holds one place of all patches, line after line.
    """

    def __init__(self, layer: Convolution) -> None:
        channels, height, width = layer.inputs
        (tall, wide), (down, across), (top, left) = layer.kernel, layer.stride, layer.padding
        _, high, long = layer.outputs
        padded = block(channels, height + 2 * top, width + 2 * left)
        self._image = padded[:, top : top + height, left : left + width]
        plane, line, number = padded.strides
        self._windows = np.lib.stride_tricks.as_strided(
            padded, (channels, tall, wide, high, long), (plane, line, number, line * down, number * across)
        )
        self._patches = block(channels, tall, wide, high, long)
        self._matrix = self._patches.reshape(-1, high * long)

    def of(self, image: Array) -> Array:
        """The matrix, shape (channels * tall * wide, places); the next call overwrites it."""
        np.copyto(self._image, image)
        np.copyto(self._patches, self._windows)
        return self._matrix


class _ConvolutionOperation(Operation):
    """A convolution of members that have weights of their own."""

    def __init__(self, layer: Convolution, rows: int) -> None:
        filters, high, long = self._shape = layer.outputs
        self._patches = _Patches(layer)
        self._weight = block(rows, filters, layer.patch)
        self._bias = block(rows, filters, 1) if layer.bias else None
        super().__init__([self._weight] if self._bias is None else [self._weight, self._bias])
        self._out = block(rows, filters, high * long)
        self._activate = ACTIVATIONS[layer.activation].in_place if layer.activation else None

    def __call__(self, x: Array) -> Array:
        out = self._out[: len(x)]
        for row, image in enumerate(x):
            self._convolve(row, image, out[row])
        return out.reshape(len(x), *self._shape)

    def each(self, row: int, batch: Array) -> Array:
        out = block(len(batch), *self._out.shape[1:])
        for image, made in zip(batch, out, strict=True):
            self._convolve(row, image, made)
        return out.reshape(len(batch), *self._shape)

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        np.matmul(self._weight[row], self._patches.of(image), out=out)
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
        """Channels, height and width of the image that it makes."""
        across = zip(self.inputs[1:], self.kernel, self.stride, strict=True)
        height, width = ((size - part) // step + 1 for size, part, step in across)
        return self.inputs[0], height, width

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
        _, high, long = self._layer.outputs
        for top in range(tall):
            for left in range(wide):
                part = x[:, :, top : top + down * high : down, left : left + across * long : across]
                part = part[:, :, :high, :long]
                np.copyto(out, part) if top == left == 0 else np.maximum(out, part, out=out)
        return out
