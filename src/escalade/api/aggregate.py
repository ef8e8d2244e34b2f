"""Runs of several seeds, as one curve for each environment and configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from escalade.config.files import read_config
from escalade.config.options import OPTIONS, Config
from escalade.errors import InputError
from escalade.media.bands import AXES, Band, band, draw_bands, read_curve
from escalade.storage.run_folder import RunFolder

Over = Literal["steps", "seconds"]

_SAME_CURVE = ("seed", "generations", "env_steps", "seconds", "target_return", "backend", "info_keys")
"""Options, besides those of where a run runs, in which runs of one curve may differ."""
_COMPARED = [
    name for name, option in OPTIONS.items() if name not in _SAME_CURVE and option.metadata["group"] != "run"
]
_NAMED = 4  # differing options, at most, in a label


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds alone."""

    env: str
    label: str
    """The strategy, and the options in which the environment's groups differ."""
    runs: tuple[str, ...]
    solved: int
    """How many of them met their target."""
    curve: Band
    """Interquartile mean of their evaluations, with its interval of confidence."""


def aggregate(
    runs: Sequence[str | PathLike[str]],
    output: str | PathLike[str] | None = None,
    *,
    over: Over = "steps",
) -> list[Group]:
    """Group runs by environment and configuration, and make one curve of each group.

    Runs of a group may differ in seed, budget, target, backend, and where they ran. See
    :func:`escalade.media.bands.band` for how a curve is made.

    Args:
        runs: run folders.
        output: a picture with a panel for each environment, png, pdf or svg; None draws none.
        over: what curves are drawn over, ``steps`` of training or ``seconds``.

    Raises:
        InputError: a folder is no run of :func:`escalade.train`, or has no evaluation.
        StorageFailure: the picture could not be written.
    """
    if over not in AXES:
        raise InputError(f"`over` {over!r} must be one of {', '.join(AXES)}")
    if not runs:
        raise InputError("no runs given: name at least one run folder")
    grouped: dict[str, tuple[Config, list[RunFolder]]] = {}
    for folder in dict.fromkeys(RunFolder.open(run).path.resolve() for run in runs):
        opened = RunFolder.open(folder)
        config = read_config(opened)
        grouped.setdefault(repr(_compared(config)), (config, []))[1].append(opened)
    configs = [config for config, _ in grouped.values()]
    groups = [_group(config, configs, folders, over) for config, folders in grouped.values()]
    if output is not None:
        panels: dict[str, dict[str, Band]] = {}
        for group in groups:
            panel = panels.setdefault(group.env, {})
            label = group.label if group.label not in panel else f"{group.label} ({len(panel) + 1})"
            panel[label] = group.curve
        draw_bands(panels, output, over)
    return groups


def _group(config: Config, configs: Sequence[Config], folders: Sequence[RunFolder], over: str) -> Group:
    solved = [folder.read_summary().get("solved") is True for folder in folders]
    curves = [read_curve(folder, over, met) for folder, met in zip(folders, solved, strict=True)]
    paths = tuple(str(folder.path) for folder in folders)
    return Group(config.env, _label(config, configs), paths, sum(solved), band(curves))


def _compared(config: Config) -> dict[str, Any]:
    return {name: getattr(config, name) for name in _COMPARED}


def _label(config: Config, configs: Sequence[Config]) -> str:
    """The strategy, and the options in which this environment's groups differ."""
    others = [_compared(other) for other in configs if other.env == config.env]
    own = _compared(config)
    differing = [name for name in own if any(other[name] != own[name] for other in others)]
    named = [f"{name}={_shown(own[name])}" for name in differing if name != "strategy"]
    more = ["..."] if len(named) > _NAMED else []
    return ", ".join([config.strategy, *named[:_NAMED], *more])


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
