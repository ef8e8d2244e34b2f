"""The policy of the best evaluation so far, as a checkpoint keeps it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from escalade.policies.normalizer import Normalization
from escalade.storage.tensors import Tensors, with_prefix

Best = tuple[NDArray[np.float32], Normalization | None]
"""Centre, shape (dimension,), and what observations were normalised by."""

_PREFIX = "best."


def best_tensors(best: Best | None) -> Tensors:
    """Return what a checkpoint keeps of it; nothing where there is none yet."""
    if best is None:
        return {}
    center, normalization = best
    parts: Tensors = {"center": center}
    if normalization is not None:
        count = np.array([normalization.count])
        parts |= {"mean": normalization.mean, "inverse_std": normalization.inverse_std, "count": count}
    return {_PREFIX + name: part for name, part in parts.items()}


def best_of(tensors: Tensors, clip: float) -> Best | None:
    """Read what :func:`best_tensors` gave, in a checkpoint; ``clip`` is the largest observation."""
    parts = with_prefix(_PREFIX, tensors)
    if not parts:
        return None
    if "mean" not in parts:
        return parts["center"].copy(), None
    mean, inverse_std = parts["mean"].copy(), parts["inverse_std"].copy()
    return parts["center"].copy(), Normalization(mean, inverse_std, clip, float(parts["count"][0]))
