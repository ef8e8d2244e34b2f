"""The options of a run of ``evolve`` as plain values, which a resumed run must have too."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from escalade.policies.layout import Layout
from escalade.storage.tensors import State
from escalade.strategies.space import StrategyFactory

_SHOWN = 16  # numbers of a vector, at most, that are written out


def facts_of(
    module: nn.Module, layout: Layout, strategy: str | StrategyFactory, asked: Mapping[str, Any]
) -> State:
    """Every option that moves the centre, as plain values; what is code goes by its name."""
    plain = {name: _plain(value) for name, value in asked.items() if value is not None}
    shapes = {name: list(shape) for name, shape in layout.shapes.items()}
    named_by = {"module": type(module).__name__, "parameters": shapes}
    return named_by | plain | {"strategy": _plain(strategy)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, partial):
        named = [f"{name}={_plain(item)}" for name, item in value.keywords.items()]
        return f"{_plain(value.func)}({', '.join([*map(str, map(_plain, value.args)), *named])})"
    if isinstance(value, torch.Tensor):  # numpy has no bfloat16
        value = value.detach().double().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        digest = hashlib.sha256(value.tobytes()).hexdigest()
        return str(value.tolist()) if value.size <= _SHOWN else f"{value.size} numbers, SHA-256 {digest}"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return value if isinstance(value, str | bool | int | float) else str(value)
