"""A config and its place in a run folder."""

from __future__ import annotations

from typing import Any

from escalade.config.conversion import from_values, parse_toml, to_toml
from escalade.config.options import Config
from escalade.errors import InputError, about
from escalade.storage.files import AnyPath
from escalade.storage.run_folder import RunFolder

_EVOLVED = "evolve"  # the run's kind in config.toml; a run of train has no such entry


def new_folder(config: Config, runs: AnyPath = "runs") -> RunFolder:
    """A new folder for a run of ``config``, in ``runs`` unless it names one, with its config.toml.

    Raises:
        InputError: the folder cannot be made, or holds a run already.
    """
    subject = config.env.rpartition(":")[2]
    folder = RunFolder.create(
        config.run_dir, subject, f"{config.strategy.rpartition(':')[2]}-seed{config.seed}", runs
    )
    with folder.kept_if_trained():
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
