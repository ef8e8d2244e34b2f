"""From an id to seeded vector environments."""

from typing import TYPE_CHECKING

from escalade.support.lazy import lazy_names

if TYPE_CHECKING:
    from escalade.envs.actions import ActionMap
    from escalade.envs.backends import settle_backend, vectorize
    from escalade.envs.environment import Environment, resolve
    from escalade.envs.purity import Purity, probe_purity
    from escalade.envs.vector import SlotError, VectorEnvironment

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

__all__ = [
    "ActionMap",
    "Environment",
    "Purity",
    "SlotError",
    "VectorEnvironment",
    "probe_purity",
    "resolve",
    "settle_backend",
    "vectorize",
]
