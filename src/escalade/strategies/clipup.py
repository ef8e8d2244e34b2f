"""ClipUp: Toklu, Liskowski, Srivastava 2020, "ClipUp: A Simple and Powerful Optimizer for
Distribution-based Policy Evolution", arXiv 2008.02387, algorithm 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from escalade.errors import InputError


class ClipUp(Optimizer):
    """Momentum over the gradient's direction alone, with a speed limit.

    ``v = clip(momentum * v - lr * g / |g|, max_speed)``, then ``parameters += v``, where ``clip``
    shortens a vector that is longer than ``max_speed`` to that length. The minus sign makes it
    descend, as every torch optimiser does; the paper ascends.

    The norms are those of all parameters of a group as one vector, of which the paper has only one:
    ``lr`` and ``max_speed`` are distances in parameter space. ``max_speed`` None means
    ``2 * lr``, the paper's advice, and follows a schedule of ``lr``. A zero gradient has no
    direction and adds nothing to the velocity.

    Raises:
        InputError: ``lr`` or ``max_speed`` is not positive, or ``momentum`` not in [0, 1).
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.01,
        momentum: float = 0.9,
        max_speed: float | None = None,
    ) -> None:
        if not lr > 0:
            raise InputError(f"ClipUp's lr {lr} must be above 0")
        if not 0 <= momentum < 1:
            raise InputError(f"ClipUp's momentum {momentum} must be at least 0 and below 1")
        if max_speed is not None and not max_speed > 0:
            raise InputError(f"ClipUp's max_speed {max_speed} must be above 0")
        super().__init__(params, {"lr": lr, "momentum": momentum, "max_speed": max_speed})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move every parameter that has a gradient; return what ``closure`` returned, if given."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._move([p for p in group["params"] if p.grad is not None], group)
        return loss

    def _move(self, params: list[Tensor], group: dict[str, Any]) -> None:
        gradients = [p.grad for p in params if p.grad is not None]
        for parameter in params:
            if not self.state[parameter]:
                self.state[parameter]["velocity"] = torch.zeros_like(parameter)
        velocities = [self.state[parameter]["velocity"] for parameter in params]
        limit = 2 * group["lr"] if group["max_speed"] is None else group["max_speed"]
        move_with_clipped_velocity(params, gradients, velocities, group["lr"], group["momentum"], limit)


def move_with_clipped_velocity(
    params: list[Tensor],
    gradients: list[Tensor],
    velocities: list[Tensor],
    lr: float,
    momentum: float,
    max_speed: float,
) -> None:
    """One step of algorithm 2 on all of ``params`` as one vector; writes to them and to ``velocities``."""
    norm = _norm(gradients)
    step = lr / norm if norm > 0 else 0.0
    for velocity, gradient in zip(velocities, gradients, strict=True):
        velocity.mul_(momentum).sub_(gradient, alpha=step)
    speed = _norm(velocities)
    for parameter, velocity in zip(params, velocities, strict=True):
        if speed > max_speed:
            velocity.mul_(max_speed / speed)
        parameter.add_(velocity)


def _norm(tensors: list[Tensor]) -> float:
    """Length of all ``tensors`` as one vector."""
    return math.hypot(*(float(t.norm()) for t in tensors))
