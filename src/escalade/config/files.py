"""A config in a run folder, and the code to import that files there may name.

A checkpoint may not name any that config.toml does not: it may be a stranger's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from escalade.config.conversion import from_values, parse_toml, to_toml
from escalade.config.options import Config
from escalade.errors import InputError, about
from escalade.rollout.behaviour import Behaviour
from escalade.storage.files import AnyPath
from escalade.storage.run_folder import RunFolder

_EVOLVED = "evolve"  # the run's kind in config.toml; a run of train has no such entry
_PLAYED = ("env", "strategy", "policy", "wrappers")
"""Options that a policy is played with."""
_NAMING = (*_PLAYED, "behaviour", "recorder")

Guard = Callable[[Mapping[str, Any]], None]
"""Checks the options that a file records, and raises :class:`InputError` for code that it may not name."""


def new_folder(config: Config, runs: AnyPath = "runs") -> RunFolder:
    """A new folder for a run of ``config``, in ``runs`` unless it names one, with its config.toml.

    Raises:
        InputError: the folder cannot be made, or holds a run already.
    """
    subject = config.env.rpartition(":")[2]
    folder = RunFolder.create(
        config.run_dir, subject, f"{config.strategy.rpartition(':')[2]}-seed{config.seed}", runs
    )
    with folder.removed_if_untrained():
        write_config(folder, config)
    return folder


def write_config(folder: RunFolder, config: Config) -> None:
    """Write config.toml."""
    folder.write_config(to_toml(config))


def read_config(folder: RunFolder) -> Config:
    """The config that a run was started (or last resumed) with.

    Raises:
        InputError: config.toml cannot be read, or holds an unknown, mistyped or impossible option.
    """
    found = read_either(folder)
    if not isinstance(found, Config):
        raise InputError(f"{folder.path} is a run of escalade.evolve: it is resumed and loaded in Python")
    return found


def read_either(folder: RunFolder) -> Config | dict[str, Any]:
    """The config of a run of :func:`escalade.train`, or the facts in that of a run of ``evolve``.

    Raises:
        InputError: config.toml cannot be read, or holds an unknown, mistyped or impossible option.
    """
    values = parse_toml(folder.config)
    if values.get("run") == _EVOLVED:
        return values
    values = from_values(values, str(folder.config))
    with about(str(folder.config)):
        return Config(**(values | {"run_dir": str(folder.path)}))


def is_evolved(folder: RunFolder) -> bool:
    """Return whether the folder is that of a run of :func:`escalade.evolve`.

    Raises:
        InputError: config.toml cannot be read.
    """
    return parse_toml(folder.config).get("run") == _EVOLVED


def code_named(values: Mapping[str, Any]) -> list[str]:
    """The options that name code to import, of those that a policy is played with."""
    return list(dict.fromkeys(name for name, _ in _code(values) if name in _PLAYED))


def of_a_script(values: Mapping[str, Any]) -> list[str]:
    """The code of a script that a config names, such as ``__main__:MyEnv``: no other process finds it."""
    return [text for name, text in _code(values) if text.startswith("__main__:") and name != "recorder"]


def known_to(folder: RunFolder, changes: Mapping[str, Any] | None = None) -> Guard:
    """A guard for checkpoints of a run: they name the code that its config.toml names, or ``changes``."""

    def check(values: Mapping[str, Any]) -> None:
        if named := _code(values):
            known = _code(vars(read_config(folder)) | dict(changes or {}))
            if unknown := _unknown(named, known):
                mend = f"write it into {folder.config} if you know it"
                raise InputError(f"a checkpoint names {unknown}, which config.toml does not: {mend}")

    return check


def _unknown(named: list[tuple[str, str]], known: list[tuple[str, str]]) -> str:
    """The first of ``named`` that is not ``known``, in words; empty if all are."""
    return next((f"`{name}` {text}" for name, text in named if (name, text) not in known), "")


def _code(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options and the code in them, ``package.module:Name``."""
    named = ((name, values.get(name) or ()) for name in _NAMING)
    each = ((name, text) for name, value in named for text in ((value,) if isinstance(value, str) else value))
    return [
        (name, text)
        for name, text in each
        if ":" in text and (name != "behaviour" or Behaviour(text).kind == "function")
    ]
