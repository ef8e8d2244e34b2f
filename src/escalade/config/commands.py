"""The command that trains with a config, as it can be typed."""

from __future__ import annotations

import json
import shlex
from typing import Any

from escalade.config.forms import form
from escalade.config.options import OPTIONS, Config


def flag(name: str) -> str:
    """``target_return`` as ``--target-return``."""
    given = OPTIONS[name].metadata["flag"] if name in OPTIONS else None
    return "--" + (given or name).replace("_", "-")


def changed(config: Config) -> list[str]:
    """Names of the options that are not at their defaults, without the run's folder and its preset."""
    plain, known = Config(env=config.env), OPTIONS.keys() - {"run_dir", "preset"}
    return [name for name in OPTIONS if name in known and getattr(config, name) != getattr(plain, name)]


_TOGETHER = {"population", "lr", "strategy", "strategy_options"}
"""Options whose defaults depend on each other: see :class:`Config`."""


def _typed(config: Config) -> list[str]:
    """Names of the options that a command has to give, where left out they would mean something else."""
    names = set(changed(config))
    if names & _TOGETHER:
        names |= {"population", "lr"}
    if config.start_from is not None:  # what is left out comes from there
        names |= {
            name for name, option in OPTIONS.items() if option.metadata["group"] in ("policy", "frames")
        }
    # With start_from, None is given too: the policy there may have a value. Flags without value have no None.
    told = {name for name in names if getattr(config, name) is not None or (config.start_from and form(name))}
    return [name for name in OPTIONS if name in told and name != "env"]


def train_command(config: Config) -> str:
    """The ``escalade train`` that trains with this config, in a new folder; quoted for a shell."""
    typed = ["escalade", "train", config.env, flag("preset"), "none"]
    for name in _typed(config):
        typed += words(name, getattr(config, name))
    return shlex.join(typed)


def text_of(value: Any) -> str:
    """An option's value as a flag takes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)


def words(name: str, value: Any) -> list[str]:
    """The words by which an option is typed: its flag and the value, or the flag alone."""
    if isinstance(value, bool):
        return [flag(name if value else f"no_{name}")]
    typed: list[str] = []
    for one in value if OPTIONS[name].metadata["repeats"] else (value,):
        text = text_of(one)
        # What begins with a dash would be taken for a flag of its own.
        typed += [f"{flag(name)}={text}"] if text.startswith("-") else [flag(name), text]
    return typed
