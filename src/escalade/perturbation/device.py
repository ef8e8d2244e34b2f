"""Counter-based noise on a torch device: each number is a hash of its address.

Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3": a generator without state can run
anywhere, in any order. Members and sums are computed on the module's device; only addresses are sent there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from escalade.errors import InputError
from escalade.perturbation.address import Stream, hash64
from escalade.perturbation.low_rank import AT_ONCE, Indices, LowRank, LowRankDraws, Part
from escalade.perturbation.population import GaussianPopulation, NoiseSource, Weights, write_each

_GOLDEN, _MIX_1, _MIX_2 = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
"""Constants of :func:`~escalade.perturbation.address.hash64` as signed numbers.

torch cannot multiply unsigned 64-bit numbers. The lowest 64 bits of a signed product are the same.
"""
_BLOCKS = {"cpu": 2**15}  # pairs of numbers generated at once: on a CPU they fit in cache,
_BLOCK = 2**22  # elsewhere they are enough for all threads of the device
_GATHERED = {"cpu": AT_ONCE}  # numbers that a sum gathers at once, or an eighth of the parameters if more;
_GATHER = 2**24  # 64 MB on a GPU, where a call costs more than its numbers


@dataclass(frozen=True)
class DeviceNoise(LowRank):
    """Source of noise whose numbers are generated on ``noise.device``. With rank 0 all noise is full."""

    noise: Counters

    def __post_init__(self) -> None:
        """Accept any rank."""

    @property
    def device(self) -> torch.device:
        """Device of the noise and of the center."""
        return self.noise.device

    def room(self, *shape: int, dtype: DTypeLike = np.float32) -> Any:
        """Return an uninitialized float32 tensor on the device."""
        return torch.empty(shape, dtype=torch.float32, device=self.device)

    def placed(self, values: Any) -> Any:
        return torch.from_numpy(np.asarray(values, np.float32)).to(self.device)

    def _draws(self, drawn: Any) -> DeviceDraws:
        return DeviceDraws(self, drawn)


def device_of(source: NoiseSource | None) -> torch.device | None:
    """Return the device on which the noise is generated, or None if the noise is in arrays."""
    return source.device if isinstance(source, DeviceNoise) else None


@dataclass(frozen=True)
class Counters:
    """Source of standard normal float32 numbers on ``device``, each a function of its address alone."""

    device: torch.device

    def draw(self, seed: int, generation: int, count: int, dimension: int) -> Any:
        """Return the ``count`` perturbations of a generation, as :class:`CounterDraws`."""
        keys = hash64(seed, int(Stream.NOISE), generation, np.arange(count))
        return CounterDraws(self.device, keys.view(np.int64), dimension)


@dataclass(frozen=True)
class CounterDraws:
    """Random numbers of a generation's perturbations."""

    device: torch.device
    keys: NDArray[np.int64]
    """Hash of seed, generation and perturbation for each perturbation, shape (count,)."""
    length: int

    def write_rows(self, which: Indices, out: Tensor) -> None:
        """Write the numbers of k perturbations into ``out``, shape (k, length), on the device.

        Numbers i and i + pairs are the cosine and the sine of Box and Muller (1958). Their two uniform
        numbers are the halves of the hash of i. A block holds as many perturbations as fit, so that small
        members need few calls of torch.
        """
        pairs, block = (self.length + 1) // 2, _BLOCKS.get(self.device.type, _BLOCK)
        keys = torch.from_numpy(self.keys[which]).to(self.device)[:, None]
        rows = max(1, block // max(1, pairs))
        for top in range(0, len(keys), rows):
            some = slice(top, top + rows)
            for low in range(0, pairs, block):
                self._write_block(keys[some], low, min(low + block, pairs), out[some])

    def _write_block(self, keys: Tensor, low: int, high: int, out: Tensor) -> None:
        pairs, places = (self.length + 1) // 2, torch.arange(low, high, device=self.device)
        bits = hashed(keys, places)
        # Plus 1, so that no logarithm is of zero.
        first = _low_bits(bits >> 32, 32).add_(1).to(torch.float32).mul_(2.0**-32)
        radius = first.log_().mul_(-2.0).sqrt_()
        angle = _low_bits(bits, 32).to(torch.float32).mul_(2.0 * math.pi * 2.0**-32)
        torch.mul(radius, angle.cos(), out=out[:, low:high])
        sines = out[:, pairs + low : pairs + high]  # one fewer at the end of an odd length
        torch.mul(radius[:, : sines.shape[1]], angle.sin_()[:, : sines.shape[1]], out=sines)


def hashed(state: Tensor, places: Tensor | int) -> Tensor:
    """Apply the last step of :func:`~escalade.perturbation.address.hash64` to int64 tensors."""
    bits = (places ^ state).add_(_GOLDEN)
    bits = bits.bitwise_xor_(_low_bits(bits >> 30, 34)).mul_(_MIX_1)
    bits = bits.bitwise_xor_(_low_bits(bits >> 27, 37)).mul_(_MIX_2)
    return bits.bitwise_xor_(_low_bits(bits >> 31, 33))


def uniforms(keys: Tensor, step: int, count: int) -> Tensor:
    """Return float32 numbers in [0, 1), shape (rows, count), a function of each row's key and the step."""
    return _low_bits(_addressed(keys, step, count) >> 40, 24).to(torch.float32) * 2.0**-24


def normals(keys: Tensor, step: int, count: int) -> Tensor:
    """Return those of :func:`escalade.perturbation.normals` in float32, by address as :func:`uniforms`."""
    places = _addressed(keys, step, count)
    radius = _fraction(hashed(places, 1)).log_().mul_(-2.0).sqrt_()
    return radius * _fraction(hashed(places, 2)).mul_(2.0 * math.pi).cos_()


def gumbels(keys: Tensor, step: int, count: int) -> Tensor:
    """Return those of :func:`escalade.perturbation.gumbels` in float32, by address as :func:`uniforms`."""
    return -torch.log(-torch.log(_fraction(_addressed(keys, step, count))))


def _addressed(keys: Tensor, step: int, count: int) -> Tensor:
    """Return hashes, shape (rows, count), of each row's key, the step and the column."""
    return hashed(hashed(keys, step)[:, None], torch.arange(count, device=keys.device))


def _fraction(bits: Tensor) -> Tensor:
    """Return float32 numbers between 0 and 1: 23 bits and half a step, which float32 holds exactly."""
    return _low_bits(bits >> 41, 23).to(torch.float32).add_(0.5).mul_(2.0**-23)


def _low_bits(numbers: Tensor, count: int) -> Tensor:
    """Clear all but the lowest ``count`` bits, because torch's right shift copies the sign bit."""
    return numbers & ((1 << count) - 1)


@dataclass(frozen=True)
class DeviceDraws(LowRankDraws):
    """Perturbations of one generation, as tensors of the device."""

    source: DeviceNoise
    drawn: Any

    def rows(self, which: Indices, out: Any = None) -> Any:
        made = self.source.room(len(which), self.source.length) if out is None else out
        self.drawn.write_rows(which, made)
        return made

    def write(self, number: int, scale: Any, out: Any) -> None:
        if self.source.rank:
            super().write(number, scale, out)
        else:  # written in place, without further memory
            self.rows([number], out[None])
            out *= scale

    def weighted_sum(self, weights: Weights, dtype: DTypeLike = np.float32) -> Any:
        """Return ``sum_k weights[k] * noise_k``, float32: one product per matrix and batch."""
        total = self.source.room(self.source.dimension).zero_()
        for numbers, placed in self._batches(weights):
            for part in self.source.parts:
                _add(part, placed, numbers, total[part.stretch])
        return total

    def weighted_square_sum(self, weights: Weights, shift: Any = None, dtype: DTypeLike = np.float32) -> Any:
        """Return ``sum_k weights[k] * (noise_k - shift)**2``, float32, for full noise."""
        assert not self.source.rank
        total = self.source.room(self.source.dimension).zero_()
        for numbers, placed in self._batches(weights):
            if shift is not None:
                numbers.sub_(shift)
            total.addmv_(numbers.square_().T, placed)
        return total

    def _batches(self, weights: Weights) -> Iterator[tuple[Any, Tensor]]:
        """Yield the numbers of perturbations with nonzero weight, shape (k, length), and their weights."""
        values, source = np.asarray(weights, np.float32), self.source
        used = np.flatnonzero(values)
        at_once = _GATHERED.get(source.device.type, _GATHER)
        rows = max(1, max(at_once, source.dimension // 8) // source.length)
        room = source.room(min(rows, len(used)), source.length)
        for low in range(0, len(used), rows):
            some = used[low : low + rows]
            yield self.rows(some, room[: len(some)]), source.placed(values[some])


def _add(part: Part, weights: Tensor, numbers: Any, total: Tensor) -> None:
    """Add the weighted sum of a part's noise to ``total``, shape (size,)."""
    if not part.rank:
        own: Any = part.numbers(numbers)
        total.addmv_(own.T, weights)
        return
    factors: tuple[Any, Any] = part.factors(numbers)
    a, b = factors
    scaled = a * (weights / math.sqrt(part.rank))[:, None, None]
    total.view(part.shape).addmm_(scaled.flatten(0, 1).T, b.flatten(0, 1))


@dataclass(frozen=True)
class DevicePopulation(GaussianPopulation):
    """Members whose center and noise are float32 tensors of a device."""

    center: Any
    source: DeviceNoise

    @property
    def dtype(self) -> np.dtype[np.floating]:
        return np.dtype(np.float32)

    def write(self, member: int, out: Any) -> None:
        """Write a member into ``out``, shape (dimension,), a tensor of the device or an array."""
        number, sign = self.perturbation(member)
        made: Any = out if isinstance(out, Tensor) else torch.empty_like(self.center)
        self.draws.write(number, sign * self.scale, made)
        made += self.center
        if made is not out:
            torch.from_numpy(out).copy_(made)

    def write_rows(self, members: Sequence[int], out: Any) -> None:
        """Write members into ``out``, shape (k, dimension), on the device: in few calls if noise is full.

        The noise of adjacent mirrored pairs is generated once.
        """
        if self.source.rank or isinstance(out, np.ndarray):
            write_each(self, members, out)
            return
        draws: Any = self.draws
        numbers, signs = self.perturbations(members)
        if np.array_equal(numbers[0::2], numbers[1::2]) and np.array_equal(signs[0::2], -signs[1::2]):
            first, second = out[0::2], out[1::2]
            draws.rows(numbers[0::2], first)
            first *= self.source.placed(signs[0::2])[:, None] * self.scale
            torch.sub(self.center, first, out=second)
            first += self.center
        else:
            draws.rows(numbers, out)
            out *= self.source.placed(signs)[:, None] * self.scale
            out += self.center


def as_device(device: Any) -> torch.device:
    """Return the torch device that ``device`` names.

    Raises:
        InputError: The device does not exist, or cannot hold numbers.
    """
    try:
        found = torch.zeros(1, device=device)
        found.item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError, ValueError) as problem:
        reason = str(problem).partition("\n")[0]
        raise InputError(f"device {str(device)!r} cannot be used here: {reason}") from None
    return found.device


def describe_device(device: torch.device) -> str:
    """Describe a device, with the model of a CUDA GPU."""
    named = device.type == "cuda"
    return f"{device} ({torch.cuda.get_device_name(device)})" if named else str(device)
