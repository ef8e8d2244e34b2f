"""Runs of the same configuration, found among run folders: what is drawn and compared as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from escalade.config.options import OPTIONS
from escalade.errors import InputError, nearest
from escalade.storage.files import path_of
from escalade.storage.run_folder import RunFolder
from escalade.training.described import differing, ordered_text
from escalade.wings.analysis.facts import RunFacts, assignments, had_by_strategy, read_facts

AnyRun = str | PathLike[str]
_NAMED = 4  # differing options, at most, in a label
_DEEPEST = 5  # folders between a folder of runs and a run


@dataclass(frozen=True)
class RunGroup:
    """Runs that are drawn as one curve, and stand in one line of a table."""

    task: str
    label: str
    """The options that tell the group from the task's others."""
    runs: tuple[RunFacts, ...]

    def latest(self, name: str) -> list[float]:
        """Return the latest number of this name of each run that has one."""
        return [value for run in self.runs if (value := run.latest(name)) is not None]


def paths_of(runs: AnyRun | Iterable[AnyRun]) -> list[Path]:
    """The paths of one run or of several."""
    if isinstance(runs, Iterable) and not isinstance(runs, str | PathLike):
        return [path_of(run) for run in runs]
    return [path_of(runs)]


def find_runs(paths: AnyRun | Iterable[AnyRun]) -> list[RunFolder]:
    """The run folders that ``paths`` name, each once; a folder of runs stands for the runs in it.

    Among several paths, files and what is in a run's folder are passed over: a shell's ``*`` names them too.

    Raises:
        InputError: a path is no run folder and holds none, or there is no path at all.
    """
    found: dict[Path, RunFolder] = {}
    given = paths_of(paths)
    for path in [path for path in given if not _in_passing(path)] or given:
        for one in [path] if _is_run(path) else _runs_below(path) or [path]:
            folder = RunFolder.open(one)
            found.setdefault(folder.path.resolve(), folder)
    if not found:
        raise InputError("no runs given: name at least one run folder")
    return list(found.values())


def group_runs(
    paths: AnyRun | Iterable[AnyRun], group_by: str | Sequence[str] | None = None
) -> list[RunGroup]:
    """Group runs by task and configuration.

    Runs of a group may differ in seed, budget, target, backend, and where they ran.

    Args:
        paths: run folders, or folders of runs.
        group_by: the option, or options, by which runs are told apart, instead of their whole configuration.

    Raises:
        InputError: a path is no run, or there is no such option.
    """
    return group_facts(list(map(read_facts, find_runs(paths))), group_by)


def group_facts(every: Sequence[RunFacts], group_by: str | Sequence[str] | None = None) -> list[RunGroup]:
    """Group runs that were read, as :func:`group_runs` does.

    Raises:
        InputError: there is no such option.
    """
    grouped: dict[str, list[RunFacts]] = {}
    asked = [group_by] if isinstance(group_by, str) else group_by
    names = None if asked is None else [_known(name, every) for name in asked]
    for facts in every:
        chosen = facts.compared() if names is None else {name: facts.flat.get(name) for name in names}
        grouped.setdefault(ordered_text({"task": facts.task, "options": chosen}), []).append(facts)
    firsts = [runs[0] for runs in grouped.values()]
    labels: dict[str, list[str]] = {}
    groups = []
    for runs in grouped.values():
        taken = labels.setdefault(runs[0].task, [])
        label = _label(runs[0], firsts) if names is None else assignments(runs[0].flat, names)
        taken.append(label if label not in taken else f"{label} ({len(taken) + 1})")
        groups.append(RunGroup(runs[0].task, taken[-1], tuple(runs)))
    return groups


def _label(facts: RunFacts, others: Sequence[RunFacts]) -> str:
    """The strategy, and the options in which this task's groups differ."""
    names = differing([other.compared() for other in others if other.task == facts.task])
    names = [name for name in had_by_strategy(facts.flat, names) if name != "strategy"]
    more = ["..."] if len(names) > _NAMED else []
    strategy = str(facts.options.get("strategy", ""))
    return ", ".join([strategy, *([assignments(facts.flat, names[:_NAMED])] if names else []), *more])


def _known(name: str, runs: Iterable[RunFacts]) -> str:
    option, known = name.strip().replace("-", "_"), {*OPTIONS}.union(*(run.flat for run in runs))
    if option not in known:
        raise InputError(f"`group_by`: there is no option {name!r}{nearest(option, known)}")
    return option


def _in_passing(path: Path) -> bool:
    """Return whether a path is a file, or a folder in that of a run, such as ``checkpoints``."""
    return path.is_file() or (path.is_dir() and not _is_run(path) and _is_run(path.parent))


def _is_run(path: Path) -> bool:
    return (path / "config.toml").is_file()


def _runs_below(folder: Path) -> list[Path]:
    depths = ["*/" * depth for depth in range(1, _DEEPEST + 1)]
    return sorted(config.parent for depth in depths for config in folder.glob(f"{depth}config.toml"))
