"""What a checkpoint of a trained policy holds, read back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from escalade.config.conversion import from_values
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.policies.normalizer import Normalization, Normalizer
from escalade.storage.tensors import State, Tensors, under
from escalade.training.policy_objective import FIXED


@dataclass(frozen=True)
class SavedPolicy:
    """The unperturbed policy, and the config it was trained with."""

    config: Config
    center: NDArray[np.float32]
    normalization: Normalization | None
    fixed: Tensors
    """The network's frozen parameters and buffers, by name."""

    @classmethod
    def of(cls, tensors: Tensors, state: State, network: nn.Module | None) -> SavedPolicy:
        """Read a checkpoint's content.

        Raises:
            InputError: the policy's network is the user's own, and ``network`` is None.
        """
        config = Config(**from_values(state["config"], "checkpoint"))
        if state["own_network"] and network is None:
            raise InputError(
                "the run trained a module of your own: in Python, pass one like it as network=..."
            )
        normalization = Normalizer.restored(tensors).freeze() if config.normalize_observations else None
        return cls(config, tensors["strategy.center"], normalization, under(FIXED, tensors))
