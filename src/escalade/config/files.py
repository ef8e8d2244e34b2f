"""A config and its place in a run folder."""

from __future__ import annotations

from escalade.config.conversion import parse_toml, read_toml, to_toml
from escalade.config.options import Config
from escalade.errors import InputError, about
from escalade.storage.run_folder import RunFolder


def new_folder(config: Config) -> RunFolder:
    """A new folder for a run of ``config``, with its config.toml.

    Raises:
        InputError: the folder cannot be made, or holds a run already.
    """
    subject = config.env.rpartition(":")[2]
    folder = RunFolder.create(
        config.run_dir, subject, f"{config.strategy.rpartition(':')[2]}-seed{config.seed}"
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
    if is_evolved(folder):
        raise InputError(f"{folder.path} is a run of escalade.evolve: it is resumed and loaded in Python")
    values = read_toml(folder.config)
    with about(str(folder.config)):
        return Config(**(values | {"run_dir": str(folder.path)}))


def is_evolved(folder: RunFolder) -> bool:
    """Tell whether the folder is that of a run of :func:`escalade.evolve`.

    Raises:
        InputError: config.toml cannot be read.
    """
    return parse_toml(folder.config).get("run") == "evolve"


def curve_of(folder: RunFolder) -> tuple[str, float | None]:
    """The title of a run's learning curve, and its target.

    Raises:
        InputError: config.toml cannot be read, or holds an unknown, mistyped or impossible option.
    """
    if is_evolved(folder):
        values = parse_toml(folder.config)
        return f"{values.get('module', 'module')}: {values.get('strategy', 'evolve')}", None
    config = read_config(folder)
    return config.env, config.target_return
