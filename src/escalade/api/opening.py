"""A run's first line, printed before torch is imported: what is started, and what ends it."""

from __future__ import annotations

from typing import Any

from escalade.config.files import read_config
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import counted, number
from escalade.support.output import say

_LIMITS = ("generations", "env_steps", "seconds", "target_return")


def announce(config: Config) -> None:
    """Say what is started, and that Ctrl-C ends a run that has no limit and no target."""
    say(opening(config))


def announce_resumed(folder: RunFolder, changes: dict[str, Any]) -> Config | None:
    """Announce a run that goes on with some options changed; its config.

    Nothing is said, and None returned, where config.toml cannot be read: a run goes on from its checkpoints.

    Raises:
        InputError: a change is impossible.
    """
    try:
        config = read_config(folder)
    except InputError:
        Config(env="any").replace(**changes)  # which checks the values
        return None
    config = config.replace(**changes)
    announce(config)
    return config


def opening(config: Config) -> str:
    """The first line of a run."""
    aims = [] if config.preset is None else [f"preset {config.preset}"]
    aims += [] if config.target_return is None else [f"target {number(config.target_return)}"]
    shown = f" ({', '.join(aims)})" if aims else ""
    line = f"{config.env}: starting {_where(config)}{shown}…"
    if all(getattr(config, name) is None for name in _LIMITS):
        line += " There is no limit and no target: Ctrl-C ends the run, saved."
    return line


def _where(config: Config) -> str:
    workers = config.worker_count
    if workers == 0:
        return "in this process"
    if config.engine == "ray":
        return "on a Ray cluster"
    return counted(workers, "thread" if config.engine == "threads" else "worker")
