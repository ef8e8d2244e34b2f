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

_SHORT = 16  # numbers in a line of a patch: shorter runs are slow to copy one by one


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
        short = self.kernel[1] * self.inputs[2] < _SHORT
        return (_ChannelsFirst if short else _ChannelsLast)(self, rows)


class _ConvolutionOperation(Operation):
    """The part that both ways share: an image with zeros around it, and its patches as a matrix."""

    _image: Array
    """The buffer an image is copied to, (height, width, channels)."""
    _windows: Array
    _patches: Array

    def __init__(self, layer: Convolution, rows: int, weight: Array, out: Array) -> None:
        self._weight, self._out = weight, out
        self._bias = block(rows, layer.filters) if layer.bias else None
        super().__init__([weight] if self._bias is None else [weight, self._bias])
        self._channels = layer.inputs[2]
        self._activate = ACTIVATIONS[layer.activation].in_place if layer.activation else None

    def __call__(self, x: Array) -> Array:
        for row, image in enumerate(x):
            self._convolve(row, image, self._out[row])
        return self._images(self._out[: len(x)])

    def each(self, row: int, batch: Array) -> Array:
        out = block(len(batch), *self._out.shape[1:])
        for image, made in zip(batch, out, strict=True):
            self._convolve(row, image, made)
        return self._images(out)

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        if image.flags.c_contiguous:
            np.copyto(self._image, image)
        else:  # channels that lie apart: numpy copies them faster one by one
            for channel in range(self._channels):
                np.copyto(self._image[..., channel], image[..., channel])
        np.copyto(self._patches, self._windows)
        self._multiply(row, out)
        if self._activate is not None:
            self._activate(out)

    def _multiply(self, row: int, out: Array) -> None:
        raise NotImplementedError

    def _images(self, out: Array) -> Array:
        raise NotImplementedError


class _ChannelsLast(_ConvolutionOperation):
    """A patch is a row of the matrix: its lines are runs of width * channels numbers in the image."""

    def __init__(self, layer: Convolution, rows: int) -> None:
        height, width, channels = layer.inputs
        (tall, wide), (down, across), (top, left) = layer.kernel, layer.stride, layer.padding
        high, long, filters = self._shape = layer.outputs
        weight = block(rows, tall * wide * channels, filters)
        super().__init__(layer, rows, weight, block(rows, high * long, filters))
        self._torch_shape = (filters, channels, tall, wide)
        padded = block(height + 2 * top, width + 2 * left, channels)
        self._image = padded[top : top + height, left : left + width]
        line, item, number = padded.strides[0], padded.strides[1], padded.strides[2]
        self._windows = np.lib.stride_tricks.as_strided(
            padded, (high, long, tall, wide * channels), (line * down, item * across, line, number)
        )
        self._patches = block(high, long, tall, wide * channels)
        self._matrix = self._patches.reshape(high * long, -1)

    def load(self, row: int, parameters: Array) -> None:
        weights = self._weight[row].size
        ordered = parameters[:weights].reshape(self._torch_shape).transpose(2, 3, 1, 0)
        self._weight[row] = ordered.reshape(self._weight[row].shape)
        if self._bias is not None:
            self._bias[row] = parameters[weights:]

    def _multiply(self, row: int, out: Array) -> None:
        np.matmul(self._matrix, self._weight[row], out=out)
        if self._bias is not None:
            out += self._bias[row]

    def _images(self, out: Array) -> Array:
        return out.reshape(len(out), *self._shape)


class _ChannelsFirst(_ConvolutionOperation):
    """A patch is a column of the matrix: a row of it holds one place of all patches, line after line."""

    def __init__(self, layer: Convolution, rows: int) -> None:
        height, width, channels = layer.inputs
        (tall, wide), (down, across), (top, left) = layer.kernel, layer.stride, layer.padding
        high, long, filters = self._shape = layer.outputs
        weight = block(rows, filters, channels * tall * wide)
        super().__init__(layer, rows, weight, block(rows, filters, high * long))
        padded = block(channels, height + 2 * top, width + 2 * left)
        self._image = padded[:, top : top + height, left : left + width].transpose(1, 2, 0)
        plane, line, number = padded.strides
        self._windows = np.lib.stride_tricks.as_strided(
            padded, (channels, tall, wide, high, long), (plane, line, number, line * down, number * across)
        )
        self._patches = block(channels, tall, wide, high, long)
        self._matrix = self._patches.reshape(-1, high * long)

    def _multiply(self, row: int, out: Array) -> None:
        np.matmul(self._weight[row], self._matrix, out=out)
        if self._bias is not None:
            out += self._bias[row][:, None]

    def _images(self, out: Array) -> Array:
        high, long, filters = self._shape
        return out.reshape(len(out), filters, high, long).transpose(0, 2, 3, 1)


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
        self._layer, self._rows = layer, rows
        self._out: Array | None = None

    def __call__(self, x: Array) -> Array:
        if self._out is None:
            self._out = self._like(x, self._rows)
        return self._pool(x, self._out[: len(x)])

    def each(self, row: int, batch: Array) -> Array:
        return self._pool(batch, self._like(batch, len(batch)))

    def _like(self, x: Array, count: int) -> Array:
        """Room for ``count`` images that lie in memory as those of ``x`` do: channels first or last."""
        high, long, channels = self._layer.outputs
        if x.strides[-1] <= x.strides[-2]:
            return block(count, high, long, channels)
        return block(count, channels, high, long).transpose(0, 2, 3, 1)

    def _pool(self, x: Array, out: Array) -> Array:
        (tall, wide), (down, across) = self._layer.kernel, self._layer.stride
        high, long, _ = self._layer.outputs
        for top in range(tall):
            for left in range(wide):
                part = x[:, top : top + down * high : down, left : left + across * long : across]
                part = part[:, :high, :long]
                np.copyto(out, part) if top == left == 0 else np.maximum(out, part, out=out)
        return out
