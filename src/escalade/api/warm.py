"""A head start for worker processes: they import what rollouts need while this process imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from escalade.config.options import Config
from escalade.engines.fork_server import warm_up
from escalade.envs.mujoco.tasks import TASKS

if TYPE_CHECKING:
    from torch import nn

_ROLLOUTS = ["escalade.rollout.rollouts", "escalade.envs.gymnasium_backend"]
_MUJOCO = ["escalade.envs.mujoco.backend", "escalade.envs.mujoco.preload"]
_ENVPOOL = "escalade.envs.envpool.preload"
_ENVPOOL_READS = "ESCALADE_PRELOADED_ENVIRONMENT"
_TORCH = "escalade.policies.population.torch_network"


def warm_up_for(config: Config, network: nn.Module | None = None) -> None:
    """Start the server that the config's workers will be forked from. Returns at once.

    A module of the user's may go through torch: then the server imports it, once for all workers.

    Raises:
        InputError: this process may have no workers.
    """
    if config.worker_count == 0 or config.engine != "local":
        return
    modules, variables = list(_ROLLOUTS), {}
    if config.backend in ("auto", "ale") and config.env.startswith("ALE/"):
        modules.append("escalade.envs.pixels.ale_backend")
    elif config.backend in ("auto", "mujoco") and config.env in TASKS:
        modules += _MUJOCO
    elif config.backend in ("auto", "envpool") and ":" not in config.env:
        modules += ["escalade.envs.envpool.backend", _ENVPOOL]
        variables[_ENVPOOL_READS] = config.env
    if network is not None or ":" in config.policy:
        modules.append(_TORCH)
    warm_up(modules, variables)
