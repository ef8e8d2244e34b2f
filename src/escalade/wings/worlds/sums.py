"""Sums over the steps of a batch: returns, lengths, and moments of observations."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escalade.policies.normalizer import Normalization
from escalade.support.arrays import precision


class Sums:
    """Return and length of each episode of a batch, up to its end.

    Args:
        limits: maximum steps of each row, shape (rows,); 0 for rows without an episode.
    """

    def __init__(self, limits: Tensor) -> None:
        self._limits = limits
        self._ends = set(torch.unique(limits).tolist())
        self.alive = limits > 0
        self._rows = torch.arange(len(limits), device=limits.device)
        """Original row of each running row."""
        self._returns = torch.zeros(len(limits), dtype=precision(limits.device), device=limits.device)
        self._lengths = torch.zeros_like(limits)
        self._zeros: Tensor | None = None
        self.returns, self.lengths = torch.zeros_like(self._returns), torch.zeros_like(limits)
        """The results of all rows; those of rows that are stepped are added by :meth:`finish`."""

    def observe(self, seen: Tensor) -> None:
        """Take the observations of a step, shape (rows, size).

        The return of an episode is NaN if an observation is not finite.
        """
        if seen.device.type == "cpu" and math.isfinite(float(seen.sum())):  # elsewhere, a look would wait
            self._zeros = None
        else:
            self._zeros = seen.sum(1).mul_(0)  # or NaN

    def add(self, rewards: Tensor, ended: Tensor, step: int) -> None:
        """Add the rewards of a step and its ends, shape (rows,) each."""
        counted = rewards if self._zeros is None else rewards + self._zeros
        self._returns += torch.where(self.alive, counted, 0)
        self._lengths += self.alive
        self.alive = self.alive > ended
        if step + 1 in self._ends:
            self.alive &= step + 1 < self._limits

    def select(self, rows: Tensor) -> None:
        """Continue with these rows only."""
        self.finish()
        self._rows, self.alive, self._limits = self._rows[rows], self.alive[rows], self._limits[rows]
        self._returns, self._lengths = self._returns[rows], self._lengths[rows]

    @property
    def seen(self) -> Tensor:
        """Number of observations of each running row so far, shape (rows,)."""
        return self._lengths

    def finish(self) -> None:
        """Write the sums of the running rows to the results."""
        self.returns[self._rows], self.lengths[self._rows] = self._returns, self._lengths


class Moments:
    """Moments of the observations of some rows, and the normalized observations of all rows.

    Sums are taken about an episode's first observation: about 0, large offsets would cost precision.

    Args:
        normalization: of this generation.
        first: the first observations, shape (rows, size), as :func:`flat` returns them.
        watched: the rows whose moments are returned, shape (n,).
        steps: the number of steps whose observations are summed at once, a power of 2.
    """

    def __init__(self, normalization: Normalization, first: Tensor, watched: Tensor, steps: int) -> None:
        mean, kind = torch.from_numpy(normalization.mean), first.dtype
        rest = mean - mean.to(kind)  # in float32, far from 0, this may be as large as the deviation
        self._mean, self._rest, self._inverse_std = (
            # Written out: torch is slow to broadcast short rows.
            part.to(kind).to(first.device).expand(first.shape).contiguous()
            for part in (mean, rest, torch.from_numpy(normalization.inverse_std))
        )
        self._clip = normalization.clip
        self._places = watched
        self._first = self._origin = first[watched].to(precision(first.device))
        self._total, self._squares = torch.zeros_like(self._first), torch.zeros_like(self._first)
        self._numbers = torch.arange(len(watched), device=first.device)
        self._found = torch.zeros((2, *self._first.shape), dtype=self._first.dtype, device=first.device)

        self._steps = torch.arange(steps, device=first.device)[:, None]
        self._set_rows(torch.zeros(len(watched), dtype=torch.int64, device=first.device))

    def _set_rows(self, lengths: Tensor) -> None:
        """Allocate memory for the next observations. ``lengths`` counts those already summed."""
        self._lengths, self._count = lengths, 0
        shape = (len(self._steps), *self._origin.shape)
        self._seen = torch.zeros(shape, dtype=self._mean.dtype, device=self._mean.device)

    def add(self, seen: Tensor) -> None:
        """Store the observations of a step, shape (rows, size)."""
        torch.index_select(seen, 0, self._places, out=self._seen[self._count])
        self._count += 1

    def flush(self, lengths: Tensor) -> None:
        """Sum the stored observations. ``lengths`` counts all observations of each row, shape (rows,)."""
        lengths = lengths.index_select(0, self._places)
        deviations = self._seen.to(self._origin.dtype) - self._origin
        deviations.masked_fill_((self._steps >= lengths - self._lengths)[:, :, None], 0)
        self._total += folded(deviations)
        self._squares += folded(deviations.square_())
        self._lengths, self._count = lengths, 0

    def normalized(self, seen: Tensor) -> Tensor:
        """Return the inputs of the policies, float32, of the same shape."""
        mean, rest, inverse_std = (part[: len(seen)] for part in (self._mean, self._rest, self._inverse_std))
        standard = (seen - mean).sub_(rest).mul_(inverse_std)
        return standard.clamp_(-self._clip, self._clip).to(torch.float32)

    def select(self, rows: Tensor, before: int) -> None:
        """Continue with these of the ``before`` rows."""
        self._finish()
        places = torch.full((before,), -1, device=rows.device)
        places[rows] = torch.arange(len(rows), device=rows.device)
        places = places[self._places]
        (on,) = torch.nonzero(places >= 0, as_tuple=True)
        self._places, self._numbers = places[on], self._numbers[on]
        self._origin, self._total, self._squares = self._origin[on], self._total[on], self._squares[on]
        self._set_rows(self._lengths[on])

    def found(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Mean and sum of squared deviations of each watched row, shape (n, 2, size).

        ``lengths`` are the numbers of their observations, shape (n,).
        """
        self._finish()
        total, squares = self._found
        offset = total / torch.from_numpy(np.maximum(lengths, 1)).to(total.device)[:, None]
        both = torch.stack((self._first + offset, (squares - total * offset).clamp(min=0)), dim=1)
        return both.cpu().double().numpy()

    def _finish(self) -> None:
        """Write the sums of the running rows to the results."""
        self._found[:, self._numbers] = torch.stack((self._total, self._squares))


def folded(parts: Tensor) -> Tensor:
    """Sum over the first axis, a power of 2, in an order that does not depend on the other axes."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = parts[:half] + parts[half:]
    return parts[0]


def flat(observations: Tensor) -> Tensor:
    """Return observations as vectors, shape (rows, size): float64 if they are, else float32."""
    seen = observations.reshape(len(observations), -1)
    return seen if seen.dtype == torch.float64 else seen.to(torch.float32)
