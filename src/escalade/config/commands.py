"""Options on the command line: flags, value forms, defaults, and the command that trains with a config."""

from __future__ import annotations

import json
import shlex
from typing import Any, get_origin

from escalade.config.options import HINTS, OPTIONS, Config
from escalade.config.types import alternatives


def form(name: str) -> str:
    """Return the form of an option's value, such as ``N`` or ``{tanh,relu}``."""
    declared: str | None = OPTIONS[name].metadata["form"]
    choices = OPTIONS[name].metadata["choices"]
    if declared or choices:
        return declared or "{" + ",".join(choices) + "}"
    kinds = [part for part in alternatives(HINTS[name]) if part is not type(None)]
    return _FORMS[get_origin(kinds[0]) or kinds[0]]


def default_of(name: str) -> str:
    """Describe an option's default."""
    option = OPTIONS[name]
    if option.default is None:
        return str(option.metadata["unset"])
    if isinstance(option.default, bool):
        return "yes" if option.default else "no"
    if isinstance(option.default, tuple):
        return ",".join(map(str, option.default)) or str(option.metadata["unset"])
    return str(option.default) if isinstance(option.default, str | int | float) else "{}"


_FORMS: dict[Any, str] = {int: "N", float: "X", str: "NAME", tuple: "N,N,...", dict: "JSON", bool: ""}


def flag(name: str) -> str:
    """Return the flag of an option or argument: ``target_return`` becomes ``--target-return``."""
    declared = OPTIONS[name].metadata["flag"] if name in OPTIONS else None
    return "--" + (declared or name).replace("_", "-")


def changed(config: Config) -> list[str]:
    """Return the options that differ from their defaults, without the run folder and the preset."""
    plain, known = Config(env=config.env), OPTIONS.keys() - {"run_dir", "preset"}
    return [name for name in OPTIONS if name in known and getattr(config, name) != getattr(plain, name)]


_TOGETHER = {"population", "lr", "strategy", "strategy_options"}
"""Options whose defaults depend on each other; see :class:`Config`."""


def _needed(config: Config) -> list[str]:
    """Return the options that a command must set, as their defaults would be different."""
    names = set(changed(config))
    if names & _TOGETHER:
        names |= {"population", "lr"}
    if config.start_from is not None:  # the other run supplies these options unless they are set
        names |= {
            name for name, option in OPTIONS.items() if option.metadata["group"] in ("policy", "frames")
        }
    # With start_from, None is set too, as the other run may have a value. Boolean flags cannot be None.
    needed = {
        name for name in names if getattr(config, name) is not None or (config.start_from and form(name))
    }
    return [name for name in OPTIONS if name in needed and name != "env"]


def train_command(config: Config) -> str:
    """Return the ``escalade train`` command for this config in a new folder, quoted for a shell."""
    typed = ["escalade", "train", config.env, flag("preset"), "none"]
    for name in _needed(config):
        typed += words(name, getattr(config, name))
    return shlex.join(typed)


def text_of(value: Any) -> str:
    """Return an option's value as text for its flag."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)


def words(name: str, value: Any) -> list[str]:
    """Return the command-line words of an option: its flag and value, or the flag alone."""
    if isinstance(value, bool):
        return [flag(name if value else f"no_{name}")]
    typed: list[str] = []
    for one in value if OPTIONS[name].metadata["repeats"] else (value,):
        text = text_of(one)
        # A value that begins with a dash would be taken for a flag.
        typed += [f"{flag(name)}={text}"] if text.startswith("-") else [flag(name), text]
    return typed
