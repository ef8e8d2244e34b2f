"""From an id to seeded vector environments."""

from typing import TYPE_CHECKING

from escalade.support.imports import lazy_names

if TYPE_CHECKING:
    from escalade.envs.actions import ActionMap as ActionMap
    from escalade.envs.backends import settle_backend as settle_backend
    from escalade.envs.backends import vectorize as vectorize
    from escalade.envs.environment import Environment as Environment
    from escalade.envs.environment import resolve as resolve
    from escalade.envs.purity import Purity as Purity
    from escalade.envs.purity import probe_purity as probe_purity
    from escalade.envs.vector import SlotError as SlotError
    from escalade.envs.vector import VectorEnvironment as VectorEnvironment

# Imported when first used: the names of the backends are wanted before Gymnasium is.
_HOMES = {
    "ActionMap": "escalade.envs.actions",
    "Environment": "escalade.envs.environment",
    "Purity": "escalade.envs.purity",
    "SlotError": "escalade.envs.vector",
    "VectorEnvironment": "escalade.envs.vector",
    "probe_purity": "escalade.envs.purity",
    "resolve": "escalade.envs.environment",
    "settle_backend": "escalade.envs.backends",
    "vectorize": "escalade.envs.backends",
}
if not TYPE_CHECKING:  # type checkers would take any name for one of the package
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = sorted(_HOMES)
