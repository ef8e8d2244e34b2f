"""Find run folders and group the runs by task and configuration."""

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
from escalade.wings.analysis.facts import RunFacts, applicable, assignments, read_facts

AnyRun = str | PathLike[str]
_MOST_OPTIONS = 4  # in a label
_DEEPEST = 5  # levels searched below a folder of runs


@dataclass(frozen=True)
class RunGroup:
    """Runs of one configuration: one curve of a plot, one line of a table."""

    task: str
    label: str
    """Options that distinguish the group from other groups of the same task."""
    runs: tuple[RunFacts, ...]

    def latest(self, name: str) -> list[float]:
        """Return the latest number ``name`` of each run that has one."""
        return [value for run in self.runs if (value := run.latest(name)) is not None]


def paths_of(runs: AnyRun | Iterable[AnyRun]) -> list[Path]:
    """Return the path of one run, or the paths of several, as a list."""
    if isinstance(runs, Iterable) and not isinstance(runs, str | PathLike):
        return [path_of(run) for run in runs]
    return [path_of(runs)]


def find_runs(paths: AnyRun | Iterable[AnyRun]) -> list[RunFolder]:
    """Return the run folders at or below ``paths``, without duplicates.

    With several paths, files and folders inside a run folder are skipped, because a shell's ``*`` matches
    them too.

    Raises:
        InputError: a path is not a run folder and contains no runs, or there are no paths.
    """
    found: dict[Path, RunFolder] = {}
    candidates = paths_of(paths)
    for path in [path for path in candidates if not _inside_a_run(path)] or candidates:
        for one in [path] if _is_run(path) else _runs_below(path) or [path]:
            folder = RunFolder.open(one)
            found.setdefault(folder.path.resolve(), folder)
    if not found:
        raise InputError("no runs to read; pass at least one run folder")
    return list(found.values())


def group_runs(
    paths: AnyRun | Iterable[AnyRun], group_by: str | Sequence[str] | None = None
) -> list[RunGroup]:
    """Group runs by task and configuration.

    Runs of a group may differ in seed, budget, target, evaluation, backend and execution.

    Args:
        paths: run folders, or folders of runs.
        group_by: option, or options, that define a configuration. None compares all others than those above.

    Raises:
        InputError: a path is not a run, or an option does not exist.
    """
    return group_facts(list(map(read_facts, find_runs(paths))), group_by)


def group_facts(every: Sequence[RunFacts], group_by: str | Sequence[str] | None = None) -> list[RunGroup]:
    """Group runs that are already read, as :func:`group_runs` does.

    Raises:
        InputError: an option does not exist.
    """
    grouped: dict[str, list[RunFacts]] = {}
    requested = [group_by] if isinstance(group_by, str) else group_by
    names = None if requested is None else [_known(name, every) for name in requested]
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
    """Return the strategy and the options in which groups of this task differ."""
    names = differing([other.compared() for other in others if other.task == facts.task])
    names = [name for name in applicable(facts.flat, names) if name != "strategy"]
    more = ["..."] if len(names) > _MOST_OPTIONS else []
    strategy = str(facts.options.get("strategy", ""))
    return ", ".join([strategy, *([assignments(facts.flat, names[:_MOST_OPTIONS])] if names else []), *more])


def _known(name: str, runs: Iterable[RunFacts]) -> str:
    option, known = name.strip().replace("-", "_"), {*OPTIONS}.union(*(run.flat for run in runs))
    if option not in known:
        raise InputError(f"`group_by`: unknown option {name!r}{nearest(option, known)}")
    return option


def _inside_a_run(path: Path) -> bool:
    """Return True for a file, and for a subfolder of a run folder such as ``checkpoints``."""
    return path.is_file() or (path.is_dir() and not _is_run(path) and _is_run(path.parent))


def _is_run(path: Path) -> bool:
    return (path / "config.toml").is_file()


def _runs_below(folder: Path) -> list[Path]:
    depths = ["*/" * depth for depth in range(1, _DEEPEST + 1)]
    return sorted(config.parent for depth in depths for config in folder.glob(f"{depth}config.toml"))
