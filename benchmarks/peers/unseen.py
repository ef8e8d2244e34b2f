"""Tables of unseen tasks, from ../results/unseen.jsonl; ../tables.py places them."""

from __future__ import annotations

import statistics

import numpy as np

from escalade.api.scores import score
from peers.table import NAMES, Run, Runs, results
from peers.tasks import UNSEEN, UNSEEN_RESULTS
from presets import markdown

PROGRAMS = ("escalade", "ppo", "sac", "ars")
TITLES = NAMES | {"sac": "SAC (SBX)"}


def returns(runs: Runs, seconds: float) -> str:
    """What each program's last evaluation until then was, the median of its seeds, and what chance has."""
    rows = []
    for task in _tasks(runs):
        cells = [_shown(_at(runs[task, program], seconds)) for program in PROGRAMS]
        rows.append([task, _shown(_chance(runs, task)), *cells])
    return markdown(["task", "chance", *(TITLES[program] for program in PROGRAMS)], rows)


def scores(runs: Runs, seconds: float) -> str:
    """The interquartile mean of scores: 0 is what chance has, 1 the best run of any program on the task."""
    tasks = [task for task in _tasks(runs) if _chance(runs, task)]
    found = {
        TITLES[program]: {
            task: _at(runs[task, program], seconds) for task in tasks if (task, program) in runs
        }
        for program in PROGRAMS
    }
    bounds = {}
    for task in tasks:
        low = statistics.mean(_chance(runs, task))
        best = max(value for of in found.values() for value in of.get(task, []))
        bounds[task] = low, best if best > low else low + 1
    rows = []
    for label, of in found.items():
        own = {task: values for task, values in of.items() if values}
        if not own:
            continue
        (method,) = score({label: own}, {task: bounds[task] for task in own}).methods
        within = "" if method.score_low is None else f" [{method.score_low:.2f}, {method.score_high:.2f}]"
        rows.append([label, str(len(own)), str(method.runs), f"{method.score_iqm:.2f}{within}"])
    return markdown(["program", "tasks", "runs", "IQM of scores [95 %]"], rows)


def unseen_runs() -> Runs:
    """Runs by task and program."""
    return results(UNSEEN_RESULTS)


def _tasks(runs: Runs) -> list[str]:
    return [task for task in UNSEEN if (task, "escalade") in runs]


def _chance(runs: Runs, task: str) -> list[float]:
    return [run["curve"][-1][2] for run in runs.get((task, "chance"), [])]


def _at(runs: list[Run], seconds: float) -> list[float]:
    seen = [[mean for when, _, mean in run["curve"] if when <= seconds] for run in runs]
    return [means[-1] for means in seen if means]


def _shown(values: list[float]) -> str:
    return f"{np.median(values):.4g}" if values else "-"
