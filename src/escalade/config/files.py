"""Configs in run folders, and checks of the code that they name.

A checkpoint may come from a stranger, so it may only name code to import that config.toml names too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from escalade.config.conversion import from_values, parse_toml, to_toml
from escalade.config.options import Config
from escalade.errors import InputError, about
from escalade.rollout.behavior import Behavior
from escalade.storage.files import AnyPath
from escalade.storage.run_folder import RunFolder

_EVOLVED = "evolve"  # value of "run" in config.toml, which runs of train do not have
_PLAYED = ("env", "strategy", "policy", "wrappers")
"""Options that may name code and that playing a policy needs."""
_NAMING = (*_PLAYED, "behavior", "recorder")

Guard = Callable[[Mapping[str, Any]], None]
"""A function that checks the options in a file, and raises :class:`InputError` for code it may not name."""


def new_folder(config: Config, runs: AnyPath = "runs") -> RunFolder:
    """Create the folder of a run, with config.toml, at ``config.run_dir`` or with a new name in ``runs``.

    Raises:
        InputError: the folder cannot be created, or already holds a run.
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
    """Read the config that a run was started or last resumed with.

    Raises:
        InputError: config.toml cannot be read, or has an unknown option or an invalid value.
    """
    found = read_either(folder)
    if not isinstance(found, Config):
        raise InputError(f"{folder.path} is a run of escalade.evolve; resume or load it in Python")
    return found


def read_either(folder: RunFolder) -> Config | dict[str, Any]:
    """Read the config of a run of :func:`escalade.train`, or the facts of a run of ``evolve``.

    Raises:
        InputError: config.toml cannot be read, or has an unknown option or an invalid value.
    """
    values = parse_toml(folder.config)
    if values.get("run") == _EVOLVED:
        return values
    values = from_values(values, str(folder.config))
    with about(str(folder.config)):
        return Config(**(values | {"run_dir": str(folder.path)}))


def is_evolved(folder: RunFolder) -> bool:
    """Return whether the folder holds a run of :func:`escalade.evolve`.

    Raises:
        InputError: config.toml cannot be read.
    """
    return parse_toml(folder.config).get("run") == _EVOLVED


def code_named(values: Mapping[str, Any]) -> list[str]:
    """Return the options that name code to import, among those that playing a policy needs."""
    return list(dict.fromkeys(name for name, _ in _code(values) if name in _PLAYED))


def of_a_script(values: Mapping[str, Any]) -> list[str]:
    """Return code such as ``__main__:MyEnv``, which only the process of its script can import."""
    return [text for name, text in _code(values) if text.startswith("__main__:") and name != "recorder"]


def known_to(folder: RunFolder, changes: Mapping[str, Any] | None = None) -> Guard:
    """Return a guard that lets a run's checkpoints name the code in its config.toml or in ``changes``."""

    def check(values: Mapping[str, Any]) -> None:
        if named := _code(values):
            known = _code(vars(read_config(folder)) | dict(changes or {}))
            if unknown := _unknown(named, known):
                fix = f"if you trust this code, write it into {folder.config}"
                raise InputError(f"a checkpoint names {unknown}, which config.toml does not; {fix}")

    return check


def _unknown(named: list[tuple[str, str]], known: list[tuple[str, str]]) -> str:
    """Describe the first of ``named`` that is not in ``known``, or return an empty string."""
    return next((f"`{name}` {text}" for name, text in named if (name, text) not in known), "")


def _code(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of an option and the code in it, ``package.module:Name``."""
    named = ((name, values.get(name) or ()) for name in _NAMING)
    each = ((name, text) for name, value in named for text in ((value,) if isinstance(value, str) else value))
    return [
        (name, text)
        for name, text in each
        if ":" in text and (name != "behavior" or Behavior(text).kind == "function")
    ]
