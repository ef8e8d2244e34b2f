"""Compare final results of runs by configuration, and list the options in which configurations differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

import numpy as np

from escalade.errors import InputError
from escalade.training.described import shown
from escalade.wings.analysis.bands import draw_profiles
from escalade.wings.analysis.comparison import Comparison, ComparisonLine
from escalade.wings.analysis.facts import RunFacts
from escalade.wings.analysis.groups import AnyRun, RunGroup, group_runs
from escalade.wings.analysis.scores import Bounds, Scores, score
from escalade.wings.analysis.statistics import estimate, interquartile_score


def compare(
    runs: AnyRun | Sequence[AnyRun],
    *,
    group_by: str | Sequence[str] | None = None,
    normalize: Bounds | None = None,
    output: AnyRun | None = None,
) -> Comparison:
    """Compare the results of runs, with one line for each environment and configuration.

    A run that has not ended counts with its latest evaluation.

    Args:
        runs: run folders, or folders of runs.
        group_by: option, or options, that define a configuration. None compares all options, as
            :func:`escalade.wings.analysis.groups.group_runs` describes.
        normalize: for each environment, the returns that score 0 and 1. Lines with the same label then form
            one method, scored across all environments; see :func:`escalade.wings.analysis.scores.score`.
        output: path for a picture of the methods' performance profiles, png, pdf or svg. None draws nothing.

    Raises:
        InputError: a folder is not a run, its files cannot be read, or an argument is wrong.
        StorageFailure: the picture could not be written.
    """
    if output is not None and normalize is None:
        raise InputError(
            "`output` is a picture of normalized scores and needs `normalize`; for learning curves, use plot"
        )
    groups = group_runs(runs, group_by)
    scores = None if normalize is None else score(_returns_by_method(groups), normalize)
    if scores is not None and output is not None:
        draw_profiles({method.label: method.profile for method in scores.methods}, output)
    return comparison_of(groups, scores)


def comparison_of(groups: Sequence[RunGroup], scores: Scores | None = None) -> Comparison:
    """Compare groups of runs, as :func:`compare` does."""
    return Comparison(tuple(map(_line, groups)), _differences(groups), scores)


def _line(group: RunGroup) -> ComparisonLine:
    returns, steps, seconds = map(group.latest, ("eval_return_mean", "env_steps", "seconds"))
    iqm = vars(estimate(interquartile_score, [np.array(returns)])) if returns else {}
    return ComparisonLine(
        env=group.task,
        label=group.label,
        runs=tuple(str(run.folder.path) for run in group.runs),
        seeds=tuple(int(run.options.get("seed", 0)) for run in group.runs),
        ended=sum(run.summary.get("stop_reason") not in (None, "interrupted") for run in group.runs),
        solved=sum(run.solved for run in group.runs),
        at_target=sum(run.summary.get("stop_reason") == "solved" for run in group.runs),
        eval_episodes=sum(map(_episodes, group.runs)),
        return_mean=fmean(returns) if returns else None,
        return_iqm=iqm.get("value"),
        return_low=iqm.get("low"),
        return_high=iqm.get("high"),
        env_steps=median(steps) if steps else None,
        seconds=median(seconds) if seconds else None,
        without_return=tuple(str(run.folder.path) for run in group.runs if run.diverged),
    )


def _returns_by_method(groups: Sequence[RunGroup]) -> Mapping[str, Mapping[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for group in groups:
        diverged = [math.nan for run in group.runs if run.diverged]
        found.setdefault(group.label, {})[group.task] = group.latest("eval_return_mean") + diverged
    return found


def _episodes(run: RunFacts) -> int:
    """Return the number of episodes in the run's latest evaluation."""
    if run.latest("eval_return_mean") is None:
        return 0
    return int(run.summary.get("eval_episodes") or run.options.get("eval_episodes") or 1)


def _differences(groups: Sequence[RunGroup]) -> dict[str, tuple[str, ...]]:
    """Return the options in which groups differ, except seeds and options about where a run executes."""
    names = dict.fromkeys(name for group in groups for run in group.runs for name in run.shown_options())
    values = {name: tuple(_values(group, name) for group in groups) for name in names}
    return {name: of for name, of in values.items() if len(set(of)) > 1}


def _values(group: RunGroup, name: str) -> str:
    """Return the group's values of an option, joined with "or" if there are several."""
    return " or ".join(dict.fromkeys(shown(name, run.flat.get(name)) for run in group.runs))
