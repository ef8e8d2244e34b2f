"""Convolutions and pooling of a population, member by member; images are (channels, height, width).

A member's convolution is one copy of the image's patches into a matrix that stays in the cache, and
one matrix product in BLAS. benchmarks/convolutions.md compares this with grouped convolutions and others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from escalade.perturbation.factors import Member
from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array
from escalade.policies.population.layers import Operation, Shape, SharingOperation, block

Pair = tuple[int, int]
_PLACES = 128  # of a product, at most: OpenBLAS multiplies 400 patches by 32 filters a fifth faster in four


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
    matrices: ClassVar[int] = 1

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

    def sharing(self, rows: int, parts: Sequence[Part]) -> SharingOperation:
        """Room for ``rows`` members that share the centre's weight."""
        return _SharingConvolution(self, rows, parts)


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


class _ImageByImage(Operation):
    """A convolution whose products are an image's alone: their shapes do not depend on how many there are."""

    _out: Array

    def __call__(self, x: Array) -> Array:
        out = self._out[: len(x)]
        for row, image in enumerate(x):
            self._convolve(row, image, out[row])
        return self._images(out)

    def each(self, row: int, batch: Array) -> Array:
        out = block(len(batch), *self._out.shape[1:])
        for image, made in zip(batch, out, strict=True):
            self._convolve(row, image, made)
        return self._images(out)

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        """Write what the member in ``row`` makes of an image."""
        raise NotImplementedError

    def _images(self, out: Array) -> Array:
        """The output of k images, shape (k, filters, height, width)."""
        raise NotImplementedError


class _ConvolutionOperation(_ImageByImage):
    """A convolution of members that have weights of their own."""

    def __init__(self, layer: Convolution, rows: int) -> None:
        filters, high, long = self._shape = layer.outputs
        self._patches = _Patches(layer)
        self._weight = block(rows, filters, layer.patch)
        self._bias = block(rows, filters, 1) if layer.bias else None
        parameters = [self._weight] if self._bias is None else [self._weight, self._bias]
        super().__init__(parameters, activation=layer.activation)
        self._out = block(rows, filters, high * long)

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        np.matmul(self._weight[row], self._patches.of(image), out=out)
        if self._bias is not None:
            out += self._bias[row]
        self.activated(out)

    def _images(self, out: Array) -> Array:
        return out.reshape(len(out), *self._shape)


class _SharedFilters:
    """The weight of a convolution that all members share, as a matrix from patches, channels last.

    One order of the centre's weight serves all members. With channels last, a patch is copied in lines of
    ``wide * channels`` numbers, which is three times as fast.
    """

    def __init__(self, layer: Convolution, rows: int, part: Part, bias: Part | None = None) -> None:
        self._layer, self._part, self._bias = layer, part, bias
        places = layer.outputs[1] * layer.outputs[2]
        self._weight = block(layer.patch, layer.filters)
        # The bias is one more thin factor, whose number is always 1: added in the same call.
        self._a = block(rows, part.rank + (bias is not None), layer.filters)
        self._b = block(rows, layer.patch, part.rank)
        self.parameters = [self._a, self._b]
        self._thin, self._correction = block(places, self._a.shape[1]), block(places, layer.filters)
        self._step = -(-places // -(-places // _PLACES))
        self._thin[:] = 1.0

    def share(self, center: Array) -> None:
        """Copy the centre's weight."""
        self._weight[:] = self._channels_last(center[self._part.stretch]).T

    def load(self, row: int, member: Member) -> None:
        """Give the member in ``row`` its factors."""
        rank = self._part.rank
        self._a[row, :rank], b = member.factors(self._part)
        self._b[row] = self._channels_last(b).T
        if self._bias is not None:
            member.write(self._bias, self._a[row, -1])

    def multiply(self, row: int, patches: Array, out: Array) -> None:
        """Write patches, shape (places, patch), times the weight of the member in ``row`` into ``out``."""
        for low in range(0, len(patches), self._step):
            np.matmul(patches[low : low + self._step], self._weight, out=out[low : low + self._step])
        np.matmul(patches, self._b[row], out=self._thin[:, : self._part.rank])
        np.matmul(self._thin, self._a[row], out=self._correction)
        out += self._correction

    def _channels_last(self, weights: Array) -> Array:
        """Rows of (channels, tall, wide) as rows of (tall, wide, channels)."""
        shape = (-1, self._layer.inputs[0], *self._layer.kernel)
        return weights.reshape(shape).transpose(0, 2, 3, 1).reshape(-1, self._layer.patch)


class _SharingConvolution(_ImageByImage, SharingOperation):
    """A convolution of members that share the centre's weight; its images have their channels last."""

    def __init__(self, layer: Convolution, rows: int, parts: Sequence[Part]) -> None:
        self._filters = _SharedFilters(layer, rows, *parts)
        super().__init__([self._filters], activation=layer.activation)
        channels, height, width = layer.inputs
        (tall, wide), (down, across), (top, left) = layer.kernel, layer.stride, layer.padding
        filters, high, long = self._shape = layer.outputs
        padded = block(height + 2 * top, width + 2 * left, channels)
        self._image = padded[top : top + height, left : left + width]
        line, column, number = padded.strides
        self._windows = np.lib.stride_tricks.as_strided(
            padded, (high, long, tall, wide * channels), (line * down, column * across, line, number)
        )
        self._patches = block(high, long, tall, wide * channels)
        self._matrix = self._patches.reshape(high * long, layer.patch)
        self._out = block(rows, high * long, filters)

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        if image.flags.c_contiguous:  # channels first: plane by plane takes half as long
            for channel, plane in enumerate(image):
                self._image[:, :, channel] = plane
        else:
            np.copyto(self._image, image.transpose(1, 2, 0))
        np.copyto(self._patches, self._windows)
        self._filters.multiply(row, self._matrix, out)
        self.activated(out)

    def _images(self, out: Array) -> Array:
        filters, high, long = self._shape
        return out.reshape(len(out), high, long, filters).transpose(0, 3, 1, 2)


@dataclass(frozen=True)
class MaxPool:
    """The largest number of each window, channel by channel; windows that do not fit are left out."""

    inputs: Shape
    kernel: Pair
    stride: Pair
    size: ClassVar[int] = 0

    @property
    def outputs(self) -> Shape:
        """Channels, height and width of the image that it makes."""
        across = zip(self.inputs[1:], self.kernel, self.stride, strict=True)
        height, width = ((size - part) // step + 1 for size, part, step in across)
        return self.inputs[0], height, width

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
