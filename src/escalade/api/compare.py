"""How runs ended, by configuration, and in which options the configurations differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from escalade.api.groups import AnyRun, RunFacts, RunGroup, group_runs, shown
from escalade.media.bands import interquartile_mean, interval


@dataclass(frozen=True)
class Line:
    """The runs of one configuration. Numbers are None where no run has them."""

    env: str
    label: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    ended: int
    """How many of the runs have come to their end: the others go on, or were interrupted."""
    solved: int
    return_mean: float | None
    """Of the runs' latest evaluations."""
    return_iqm: float | None
    """Their interquartile mean."""
    return_low: float | None
    return_high: float | None
    """The ends of its 95 % bootstrap interval; None for a single run."""
    env_steps: float | None
    """Median over the runs; so are the seconds."""
    seconds: float | None


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` returns."""

    lines: tuple[Line, ...]
    options: dict[str, tuple[str, ...]]
    """The options in which the lines differ, and their values, one a line."""


def compare(runs: Sequence[AnyRun]) -> Comparison:
    """Compare how runs ended, a line for each environment and configuration.

    See :func:`escalade.api.groups.group_runs` for what makes a configuration. A run that has not ended counts
    with its latest evaluation so far.

    Args:
        runs: run folders, or folders of runs.

    Raises:
        InputError: a folder is no run, or its files cannot be read.
    """
    groups = group_runs(runs)
    return Comparison(tuple(map(_line, groups)), _differences(groups))


def _line(group: RunGroup) -> Line:
    returns = [value for run in group.runs if (value := _latest(run, "eval_return_mean")) is not None]
    low = high = None
    if len(returns) > 1:
        ends = interval(np.array(returns)[:, None])
        low, high = (float(end[0]) for end in ends)
    return Line(
        env=group.task,
        label=group.label,
        runs=tuple(str(run.folder.path) for run in group.runs),
        seeds=tuple(int(run.options.get("seed", 0)) for run in group.runs),
        ended=sum(run.summary.get("stop_reason") not in (None, "interrupted") for run in group.runs),
        solved=group.solved,
        return_mean=fmean(returns) if returns else None,
        return_iqm=float(interquartile_mean(np.array(returns))) if returns else None,
        return_low=low,
        return_high=high,
        env_steps=_median(group, "env_steps"),
        seconds=_median(group, "seconds"),
    )


def _latest(run: RunFacts, name: str) -> float | None:
    """A number of the run's summary, or the last one in its progress so far."""
    value = run.summary.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return next((value for value in reversed(run.columns[name]) if math.isfinite(value)), None)


def _median(group: RunGroup, name: str) -> float | None:
    known = [value for run in group.runs if (value := _latest(run, name)) is not None]
    return median(known) if known else None


def _differences(groups: Sequence[RunGroup]) -> dict[str, tuple[str, ...]]:
    """Each option in which groups differ, but for seeds and where runs ran."""
    names = dict.fromkeys(name for group in groups for run in group.runs for name in run.told())
    values = {name: tuple(_values(group, name) for group in groups) for name in names}
    return {name: of for name, of in values.items() if len(set(of)) > 1}


def _values(group: RunGroup, name: str) -> str:
    """The group's values of an option: one, or several with ``or`` between."""
    return " or ".join(dict.fromkeys(shown(name, run.options.get(name)) for run in group.runs))
