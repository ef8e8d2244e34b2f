"""Arrays and tensors of one memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def tensor_of(values: Any) -> Tensor:
    """An array as a tensor of its memory; a tensor as it is.

    Not by ``torch.as_tensor``, which copies an array to torch's default device.
    """
    found: Tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    return found
