"""The options of an ``evolve`` run as plain values, which must be equal when the run is resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from escalade.fitness.work import FitnessSetup
from escalade.storage.tensors import State
from escalade.strategies.base import StrategyFactory
from escalade.support.keywords import fixed_by

_SHOWN = 16  # numbers up to which a vector is written out
_SAMPLED = 2**16  # numbers of a fixed tensor that enter the digest, about


def facts_of(setup: FitnessSetup, strategy: str | StrategyFactory, options: Mapping[str, Any]) -> State:
    """Return everything that affects the center as plain values: options, and a digest of the fixed tensors.

    Functions are identified by name. A ``functools.partial`` fitness is identified by its function only.
    """
    fixed = fixed_by(strategy)
    plain = {
        name: _plain(value) for name, value in options.items() if value is not None and name not in fixed
    }
    shapes = {name: list(shape) for name, shape in setup.layout.shapes.items()}
    fitness = setup.fitness
    while isinstance(fitness, partial):
        fitness = fitness.func
    named_by = {"module": type(setup.module).__name__, "fitness": _plain(fitness), "parameters": shapes}
    named_by["order_of_parameters"] = list(shapes)  # a dict in a checkpoint loses its order
    return named_by | plain | {"strategy": _plain(strategy)} | _fixed_tensors(setup.module)


def _fixed_tensors(module: nn.Module) -> State:
    """Return a digest of a module's frozen parameters and buffers, and dtypes other than float32.

    The digest samples about 65,536 evenly spaced numbers of larger tensors.
    """
    evolved = {name: part for name, part in module.named_parameters() if part.requires_grad}
    types = sorted({str(part.dtype).removeprefix("torch.") for part in evolved.values()} - {"float32"})
    found: State = {"types": ", ".join(types)} if types else {}
    tensors = [*module.named_parameters(), *module.named_buffers()]
    fixed = [(name, tensor) for name, tensor in tensors if name not in evolved]
    if fixed:
        digest = hashlib.sha256()
        for name, tensor in fixed:
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} ".encode())
            if tensor.layout == torch.strided and tensor.device.type != "meta":
                flat = tensor.detach().reshape(-1)[:: max(1, tensor.numel() // _SAMPLED)]
                plain = flat.resolve_conj().resolve_neg().cpu().contiguous()
                digest.update(plain.view(torch.uint8).numpy().tobytes())
        found["frozen_and_buffers"] = f"{len(fixed)} tensors, SHA-256 {digest.hexdigest()}"
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, partial):
        named = [f"{name}={_plain(item)}" for name, item in value.keywords.items()]
        return f"{_plain(value.func)}({', '.join([*map(str, map(_plain, value.args)), *named])})"
    if isinstance(value, torch.Tensor):  # NumPy has no bfloat16
        value = value.detach().double().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        digest = hashlib.sha256(value.tobytes()).hexdigest()
        return str(value.tolist()) if value.size <= _SHOWN else f"{value.size} numbers, SHA-256 {digest}"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return value if isinstance(value, str | bool | int | float) else str(value)
