"""Convolutions and pooling of a population, member by member; images are (channels, height, width).

A member's convolution copies the image's patches into a matrix that stays in the cache, and calls BLAS for
one matrix product. benchmarks/convolutions.md compares this with grouped convolutions and others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from escalade.perturbation.low_rank import Part
from escalade.policies.activations import Array
from escalade.policies.population.layers import Operation, Shape, block

Pair = tuple[int, int]
_PLACES = 128  # patches per product: in four, OpenBLAS multiplies 400 patches by 32 filters a fifth faster


class Windows(NamedTuple):
    """Positions of a sliding window in an image of the shape ``inputs``."""

    inputs: Shape
    kernel: Pair
    stride: Pair
    padding: Pair

    @property
    def places(self) -> Pair:
        """Height and width of the output image, which has a number for each position."""
        across = zip(self.inputs[1:], self.padding, self.kernel, self.stride, strict=True)
        high, wide = ((size + 2 * edge - part) // step + 1 for size, edge, part, step in across)
        return high, wide


def convolution(
    windows: Windows, rows: int, parts: Sequence[Part], activation: str | None = None
) -> ConvolutionOperation:
    """Allocate a convolution of ``rows`` members with its activation.

    The flat vector holds the weight in torch's shape, (filters, channels, height, width), then the bias.
    """
    kind = SharingConvolution if parts[0].rank else OwnConvolution
    return kind(windows, rows, parts, activation)


class ConvolutionOperation(Operation):
    """A convolution with one product per image, whose shape does not depend on the number of images."""

    _out: Array

    def __call__(self, x: Array) -> Array:
        return self._convolved(range(len(x)), x, self._out[: len(x)])

    def each(self, row: int, batch: Array) -> Array:
        return self._convolved([row] * len(batch), batch, block(len(batch), *self._out.shape[1:]))

    def _convolved(self, rows: Iterable[int], images: Array, out: Array) -> Array:
        for row, image, made in zip(rows, images, out, strict=True):
            self._convolve(row, image, made)
            self.activated(made)
        return self._images(out)

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        """Write the outputs of the member in ``row`` for one image."""
        raise NotImplementedError

    def _images(self, out: Array) -> Array:
        """Return the output as k images, shape (k, filters, height, width)."""
        raise NotImplementedError


class OwnConvolution(ConvolutionOperation):
    """A convolution of members with their own weights.

    The patches of an image are the columns of a matrix. A row of the matrix holds the same pixel of all
    patches, line by line.
    """

    def __init__(
        self, windows: Windows, rows: int, parts: Sequence[Part], activation: str | None = None
    ) -> None:
        parameters = [block(rows, *part.shape) for part in parts]
        super().__init__(parts, parameters, activation=activation)
        self._weight, *self._bias = parameters
        channels, height, width = windows.inputs
        (tall, wide), (down, across), (top, left) = windows.kernel, windows.stride, windows.padding
        high, long = self._places = windows.places
        padded = block(channels, height + 2 * top, width + 2 * left)
        self._image = padded[:, top : top + height, left : left + width]
        plane, line, number = padded.strides
        self._windows = np.lib.stride_tricks.as_strided(
            padded, (channels, tall, wide, high, long), (plane, line, number, line * down, number * across)
        )
        self._patches = block(channels, tall, wide, high, long)
        self._matrix = self._patches.reshape(-1, high * long)
        self._out = block(rows, parts[0].shape[0], high * long)

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        np.copyto(self._image, image)
        np.copyto(self._patches, self._windows)
        np.matmul(self._weight[row], self._matrix, out=out)
        for bias in self._bias:
            out += bias[row]

    def _images(self, out: Array) -> Array:
        return out.reshape(*out.shape[:2], *self._places)


class SharingConvolution(ConvolutionOperation):
    """A convolution of members that share the center's weight.

    Patches are the rows of a matrix, and images have their channels last. A patch is then copied in lines of
    ``wide * channels`` numbers, which is three times as fast, and the center's weight is rearranged once for
    all members.
    """

    def __init__(
        self, windows: Windows, rows: int, parts: Sequence[Part], activation: str | None = None
    ) -> None:
        self._part, *self._bias = parts
        (filters, patch), rank = self._part.shape, self._part.rank
        # The bias is one more thin factor, whose coefficient is always 1, and is added in the same call.
        self._a, self._b = block(rows, rank + len(self._bias), filters), block(rows, patch, rank)
        super().__init__(parts, [self._a, self._b], activation=activation)
        channels, height, width = windows.inputs
        (tall, wide), (down, across), (top, left) = windows.kernel, windows.stride, windows.padding
        high, long = self._places = windows.places
        self._kernel, places = (channels, tall, wide), high * long
        padded = block(height + 2 * top, width + 2 * left, channels)
        self._image = padded[top : top + height, left : left + width]
        line, column, number = padded.strides
        self._windows = np.lib.stride_tricks.as_strided(
            padded, (high, long, tall, wide * channels), (line * down, column * across, line, number)
        )
        self._patches = block(high, long, tall, wide * channels)
        self._matrix = self._patches.reshape(places, patch)
        self._weight = block(patch, filters)
        self._thin, self._correction = block(places, self._a.shape[1]), block(places, filters)
        self._thin[:] = 1.0
        self._step = -(-places // -(-places // _PLACES))
        self._out = block(rows, places, filters)

    def share(self, center: Array) -> None:
        self._weight[:] = self._channels_last(center[self._part.stretch]).T

    def load(self, row: int, member: Any) -> None:
        self._a[row, : self._part.rank], b = member.factors(self._part)
        self._b[row] = self._channels_last(b).T
        for part in self._bias:
            member.write(part, self._a[row, -1])

    def _convolve(self, row: int, image: Array, out: Array) -> None:
        if image.flags.c_contiguous:  # channels first, where plane by plane takes half as long
            for channel, plane in enumerate(image):
                self._image[:, :, channel] = plane
        else:
            np.copyto(self._image, image.transpose(1, 2, 0))
        np.copyto(self._patches, self._windows)
        patches = self._matrix
        for low in range(0, len(patches), self._step):
            np.matmul(patches[low : low + self._step], self._weight, out=out[low : low + self._step])
        np.matmul(patches, self._b[row], out=self._thin[:, : self._part.rank])
        np.matmul(self._thin, self._a[row], out=self._correction)
        out += self._correction

    def _channels_last(self, weights: Array) -> Array:
        """Reorder rows of (channels, tall, wide) to rows of (tall, wide, channels)."""
        transposed = weights.reshape(-1, *self._kernel).transpose(0, 2, 3, 1)
        return transposed.reshape(-1, self._part.shape[1])

    def _images(self, out: Array) -> Array:
        return out.reshape(len(out), *self._places, -1).transpose(0, 3, 1, 2)


class MaxPoolOperation(Operation):
    """Maximum of each window, channel by channel. Windows that do not fit are omitted."""

    def __init__(self, windows: Windows, rows: int, parts: Sequence[Part]) -> None:
        super().__init__()
        self._kernel, self._stride, self._places = windows.kernel, windows.stride, windows.places
        self._out = block(rows, windows.inputs[0], *windows.places)

    def __call__(self, x: Array) -> Array:
        return self._pool(x, self._out[: len(x)])

    def each(self, row: int, batch: Array) -> Array:
        return self._pool(batch, block(len(batch), *self._out.shape[1:]))

    def _pool(self, x: Array, out: Array) -> Array:
        (tall, wide), (down, across), (high, long) = self._kernel, self._stride, self._places
        for top in range(tall):
            for left in range(wide):
                part = x[:, :, top : top + down * high : down, left : left + across * long : across]
                part = part[:, :, :high, :long]
                np.copyto(out, part) if top == left == 0 else np.maximum(out, part, out=out)
        return out
