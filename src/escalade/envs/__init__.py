"""Environments: from an id to seeded vector environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from escalade.support.imports import lazy_names

if TYPE_CHECKING:
    from escalade.envs.actions import ActionMap as ActionMap
    from escalade.envs.environment import Environment as Environment
    from escalade.envs.environment import resolve as resolve
    from escalade.envs.purity import Purity as Purity
    from escalade.envs.purity import probe_purity as probe_purity
    from escalade.envs.vector import SlotError as SlotError
    from escalade.envs.vector import VectorEnvironment as VectorEnvironment
    from escalade.envs.vector import settle_backend as settle_backend
    from escalade.envs.vector import vectorize as vectorize

BOUNDINGS: Final = ("auto", "clip", "rescale", "tanh", "sigmoid")
"""Methods to map outputs to the bounds of a Box action; see :class:`escalade.envs.actions.ActionMap`."""

# Imported on first use, because the names of the backends are needed before Gymnasium.
_HOMES = {
    "ActionMap": "escalade.envs.actions",
    "Environment": "escalade.envs.environment",
    "Purity": "escalade.envs.purity",
    "SlotError": "escalade.envs.vector",
    "VectorEnvironment": "escalade.envs.vector",
    "probe_purity": "escalade.envs.purity",
    "resolve": "escalade.envs.environment",
    "settle_backend": "escalade.envs.vector",
    "vectorize": "escalade.envs.vector",
}
if not TYPE_CHECKING:  # type checkers would accept any name of this package
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = sorted(_HOMES)
