"""Optimizers of the center for gradient strategies.

Each of the named ones is a few tensors and one ``step``. They are not ``torch.optim`` optimizers, because the
first method call on one of those imports ``torch._dynamo``, which takes longer than a short training. Adam
therefore calls the kernel behind ``torch.optim.Adam(fused=True)`` directly, although its name is private.
Torch's public functions would need several passes over the center, and round differently.
A user's own ``torch.optim`` optimizer works too, through
:class:`escalade.strategies.center_optimizer.TorchOptimizer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from escalade.errors import InputError
from escalade.strategies.center_optimizer import CenterOptimizer, TorchOptimizer
from escalade.support.numbers import real_number
from escalade.support.registry import named

_SHORT = 1e-15  # shortest descent whose squares fit into float32
_MOST = 1e18  # largest number in a descent: its square, which Adam stores, must fit into float32


class Adam(CenterOptimizer):
    """Adam by torch's fused kernel, in one pass and without temporaries.

    Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization", arXiv 1412.6980, algorithm 1.
    Bit-identical to ``torch.optim.Adam(fused=True)``, except that numbers beyond 1e18 are clipped.
    """

    def __init__(self, params: Iterable[Tensor], lr: float = 0.01) -> None:
        super().__init__(params, lr, ("exp_avg", "exp_avg_sq"))
        # The kernel requires a float32 step on the device.
        self.memory["step"] = torch.zeros((), dtype=torch.float32, device=self.center.device)

    def step(self, descent: Tensor, lr: float) -> None:
        memory = self.memory
        memory["step"] += 1
        torch._fused_adam_(
            [self.center],
            [descent.clamp_(-_MOST, _MOST)],
            [memory["exp_avg"]],
            [memory["exp_avg_sq"]],
            [],
            [memory["step"]],
            lr=lr,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


class SGD(CenterOptimizer):
    """``v = momentum * v + (1 - momentum) * descent``, then ``center -= lr * v``.

    The velocity is a mean of descents from the first step on, as in the code of Salimans et al. 2017.
    ``torch.optim.SGD`` with ``dampening=momentum`` does not scale the first descent.

    Args:
        params: one tensor, the center.
        lr: default step size, for a strategy without its own ``lr``.
        momentum: in [0, 1).
    """

    def __init__(self, params: Iterable[Tensor], lr: float = 0.01, momentum: float = 0.9) -> None:
        super().__init__(params, lr, ("momentum_buffer",) if momentum > 0 else ())
        self.momentum = momentum

    def step(self, descent: Tensor, lr: float) -> None:
        if self.momentum > 0:
            velocity = self.memory["momentum_buffer"]
            descent = velocity.mul_(self.momentum).add_(descent, alpha=1 - self.momentum)
        self.center.add_(descent, alpha=-lr)


class ClipUp(CenterOptimizer):
    """Momentum over the direction of descent alone, with a speed limit.

    Toklu, Liskowski, Srivastava 2020, "ClipUp: A Simple and Powerful Optimizer for Distribution-based Policy
    Evolution", arXiv 2008.02387, algorithm 2: ``v = clip(momentum * v - lr * g / |g|, max_speed)``, then
    ``center += v``, where ``clip`` shortens a vector that is longer than ``max_speed`` to that length. A
    descent of zero has no direction and adds nothing to the velocity.

    Args:
        params: one tensor, the center.
        lr: default step size, a distance in parameter space, for a strategy without its own ``lr``.
        momentum: in [0, 1).
        max_speed: the longest step; None means ``2 * lr``, the paper's advice, and follows a schedule of
            ``lr``.

    Raises:
        InputError: ``lr`` or ``max_speed`` is not positive, or ``momentum`` not in [0, 1).
    """

    def __init__(
        self,
        params: Iterable[Tensor],
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
        super().__init__(params, lr, ("velocity",))
        self.momentum, self.max_speed = momentum, max_speed

    def step(self, descent: Tensor, lr: float) -> None:
        velocity, limit = self.memory["velocity"], 2 * lr if self.max_speed is None else self.max_speed
        length = float(descent.norm())
        if length < _SHORT or math.isinf(length):  # squares are 0 or infinite; only the direction matters
            largest = float(descent.abs().max())
            descent = descent / largest if largest > 0 else descent
            length = float(descent.norm())
        velocity.mul_(self.momentum).sub_(descent, alpha=lr / length if length > 0 else 0.0)
        speed = float(velocity.norm())
        if speed > limit:
            velocity.mul_(limit / speed)
        self.center.add_(velocity)


OptimizerFactory = Callable[[Iterable[Tensor]], torch.optim.Optimizer | CenterOptimizer]
"""A function from parameters to their optimizer, such as ``partial(torch.optim.AdamW, lr=0.01)``."""

NAMED: Final[dict[str, Callable[..., CenterOptimizer]]] = {
    "adam": Adam,
    "sgd": SGD,
    "clipup": ClipUp,
}
"""Optimizers by name."""


def make_optimizer(
    optimizer: str | OptimizerFactory, center: Tensor, momentum: float | None = None
) -> CenterOptimizer:
    """Create the optimizer of ``center`` from a strategy's argument ``optimizer``.

    Args:
        optimizer: a name from :data:`NAMED`, or a function that returns an optimizer.
        center: the tensor to optimize.
        momentum: momentum of ``sgd`` and ``clipup``, in [0, 1); None means their default.

    Raises:
        InputError: ``optimizer`` is neither a known name nor a function that returns an optimizer, or
            ``momentum`` does not apply to it.
    """
    factory: Any = named("optimizer", optimizer, NAMED) if isinstance(optimizer, str) else optimizer
    if momentum is not None:
        if getattr(factory, "func", factory) not in (SGD, ClipUp):
            raise InputError(f"momentum {momentum} needs the optimizer sgd or clipup")
        if not 0 <= real_number(momentum, "momentum") < 1:
            raise InputError(f"momentum {momentum} must be at least 0 and below 1")
        factory = partial(factory, momentum=momentum)
    made = factory([center]) if callable(factory) else None
    if isinstance(made, CenterOptimizer):
        return made
    if isinstance(made, torch.optim.Optimizer):
        if any(group.get("maximize") for group in made.param_groups):
            raise InputError(
                f"optimizer {optimizer!r} must not maximize, because it gets a descent; remove maximize"
            )
        return TorchOptimizer([center], made)
    raise InputError(
        f"optimizer {optimizer!r} must be one of {', '.join(NAMED)} or make a torch.optim optimizer of the "
        "parameters it is called with, such as partial(torch.optim.Adam, lr=0.01)"
    )
