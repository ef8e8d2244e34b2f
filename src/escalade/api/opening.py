"""A run's first line, printed before torch is imported: what is started, and what ends it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from escalade.config.files import read_config
from escalade.config.options import Config
from escalade.errors import InputError
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import counted
from escalade.support.output import say

_LIMITS = ("generations", "env_steps", "seconds", "target_return")


def announce(config: Config) -> None:
    """Say what is started, and that Ctrl-C ends a run that has no limit and no target."""
    say(opening(config))


def announce_resumed(folder: RunFolder, changes: dict[str, Any]) -> None:
    """Announce a run that goes on with some options changed.

    Nothing is said where config.toml cannot be read: a run goes on from its checkpoints.
    """
    with suppress(InputError):
        announce(read_config(folder).replace(**changes))


def opening(config: Config) -> str:
    """The first line of a run."""
    line = f"{config.env}: starting {_where(config)}…"
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
