"""The first line of a run, and an early start of its workers, both before torch is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from escalade.config.files import read_config
from escalade.config.options import Config
from escalade.engines.fork_server import warm_up
from escalade.engines.registry import ENGINES
from escalade.envs.backends import BACKENDS
from escalade.envs.mujoco.tasks import TASKS
from escalade.envs.providers import check_packages
from escalade.errors import InputError
from escalade.recorders.registry import RECORDERS
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import counted, number
from escalade.support.output import print_line
from escalade.support.registry import Entry

if TYPE_CHECKING:
    from torch import nn


_LIMITS = ("generations", "env_steps", "seconds", "target_return")


def announce(config: Config) -> None:
    """Print the first line of a run.

    Raises:
        InputError: a package is missing that the environment or an option needs.
    """
    check_packages(config.env)
    chosen: list[tuple[str, str, Mapping[str, Entry]]] = [("backend", config.backend, BACKENDS)]
    chosen += [("engine", config.engine, ENGINES)] if config.worker_count else []
    chosen += [("recorder", name, RECORDERS) for name in config.recorder]
    for option, name, registry in chosen:
        if name in registry:
            registry[name].check_installed(option)
    print_line(opening(config))


def announce_resumed(folder: RunFolder, changes: dict[str, Any]) -> Config | None:
    """Print the first line of a resumed run.

    Returns:
        Its config with the changes, or None, with nothing printed, if config.toml cannot be read; the run
        then resumes from the config in its checkpoints.

    Raises:
        InputError: a change is invalid, or a package is missing.
    """
    try:
        config = read_config(folder)
    except InputError:
        Config(env="any").replace(**changes)  # checks the values
        return None
    config = config.replace(**changes)
    announce(config)
    return config


def opening(config: Config) -> str:
    """Return the first line of a run; it mentions Ctrl-C if the run has no limit and no target."""
    aims = [] if config.preset is None else [f"preset {config.preset}"]
    aims += [] if config.target_return is None else [f"target {number(config.target_return)}"]
    shown = f" ({', '.join(aims)})" if aims else ""
    line = f"{config.env}: starting {_place(config)}{shown}…"
    if all(getattr(config, name) is None for name in _LIMITS):
        line += " No limit or target is set; press Ctrl-C to save the run and stop."
    return line


def _place(config: Config) -> str:
    workers = config.worker_count
    if workers == 0:
        return "in this process"
    if config.engine == "ray":
        return "on a Ray cluster"
    return counted(workers, "thread" if config.engine == "threads" else "worker")


_ROLLOUTS = ["escalade.rollout.rollouts", "escalade.envs.gymnasium_backend"]
_MUJOCO = ["escalade.envs.mujoco.backend", "escalade.envs.mujoco.preload"]
_ENVPOOL = "escalade.envs.envpool.preload"
_ENVPOOL_READS = "ESCALADE_PRELOADED_ENVIRONMENT"
_TORCH = "escalade.policies.population.torch_network"


def warm_up_for(config: Config, network: nn.Module | None = None) -> None:
    """Start the server that the config's workers will be forked from, without waiting for it.

    If the user's own module may need torch, the server imports torch, once for all workers.

    Raises:
        InputError: this process may not start workers.
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
