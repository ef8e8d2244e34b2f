"""A head start for worker processes: they import what rollouts need while this process imports torch."""

from __future__ import annotations

from escalade.config.options import Config
from escalade.engines.processes import warm_up

_ROLLOUTS = ["escalade.rollout.rollouts", "escalade.envs.gymnasium_backend"]


def warm_up_for(config: Config) -> None:
    """Start the server that the config's workers will be forked from. Returns at once."""
    if config.worker_count > 0 and config.engine == "local":
        warm_up(_ROLLOUTS if config.backend == "gymnasium" else [*_ROLLOUTS, "envpool"])
