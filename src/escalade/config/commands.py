"""Options as they are typed, in words for ``--help``, and the command that trains with a config."""

from __future__ import annotations

import json
import shlex
from typing import Any, get_origin

from escalade.config.options import HINTS, OPTIONS, Config
from escalade.config.types import alternatives


def form(name: str) -> str:
    """The form that its value is written in, such as ``N`` or ``{tanh,relu}``."""
    given: str | None = OPTIONS[name].metadata["form"]
    choices = OPTIONS[name].metadata["choices"]
    if given or choices:
        return given or "{" + ",".join(choices) + "}"
    kinds = [part for part in alternatives(HINTS[name]) if part is not type(None)]
    return _FORMS[get_origin(kinds[0]) or kinds[0]]


def default_of(name: str) -> str:
    """The option's default, in words."""
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
