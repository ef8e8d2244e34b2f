"""The start of the engine ``ray``; Ray is imported then, and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from escalade.engines.base import EngineOptions, Factory
    from escalade.engines.ray.engine import RayEngine


def start(factory: Factory, options: EngineOptions) -> RayEngine:
    """The engine ``ray``.

    Raises:
        InputError: Ray is missing, the address cannot be reached, or the versions differ.
    """
    from escalade.engines.ray.cluster import RayCluster
    from escalade.engines.ray.engine import RayEngine

    return RayEngine(RayCluster(factory, options), options)
