"""Runs of several seeds, as one curve for each environment and configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from escalade.api.groups import AnyRun, RunGroup, axis_of, group_runs
from escalade.errors import InputError
from escalade.media.bands import Band, band, read_curve
from escalade.media.comparison import draw_bands
from escalade.media.curves import X_AXES

Over = Literal["steps", "seconds", "generations", "episodes"]


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
    runs: Sequence[AnyRun],
    output: AnyRun | None = None,
    *,
    over: Over = "steps",
) -> list[Group]:
    """Group runs by environment and configuration, and make one curve of each group, as numbers.

    :func:`escalade.api.plot.plot` draws the same curves with more choices. See
    :func:`escalade.api.groups.group_runs` for what makes a group, and
    :func:`escalade.media.bands.band` for how a curve is made.

    Args:
        runs: run folders, or folders of runs.
        output: a picture with a panel for each environment, png, pdf or svg; None draws none.
        over: what curves are over: ``steps`` of training, ``seconds``, ``generations`` or ``episodes``.

    Raises:
        InputError: a folder is no run, or has no evaluation.
        StorageFailure: the picture could not be written.
    """
    check_axis("over", over)
    found = group_runs(runs)
    axis = axis_of(found, over)
    groups = [_group(group, axis) for group in found]
    if output is not None:
        panels: dict[str, dict[str, Band]] = {}
        for group in groups:
            panels.setdefault(group.env, {})[group.label] = group.curve
        draw_bands(panels, output, axis)
    return groups


def check_axis(name: str, value: str) -> None:
    """Refuse what curves cannot be drawn over.

    Raises:
        InputError: it is another than the names of :data:`escalade.media.curves.X_AXES`.
    """
    if value not in X_AXES:
        raise InputError(f"`{name}` {value!r} must be one of {', '.join(X_AXES)}")


def _group(group: RunGroup, over: str) -> Group:
    curves = [read_curve(run.folder, over, run.solved) for run in group.runs]
    paths = tuple(str(run.folder.path.resolve()) for run in group.runs)
    return Group(group.task, group.label, paths, group.solved, band(curves))
