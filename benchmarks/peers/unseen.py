"""Tables of unseen tasks, from ../results/unseen.jsonl; ../tables.py places them."""

from __future__ import annotations

import statistics

from escalade.wings.analysis.scores import score
from peers.table import NAMES, Runs, after, at
from peers.tasks import UNSEEN
from presets import markdown

TITLES = {"chance": "chance"} | {key: NAMES[key] for key in ("escalade", "ppo")} | {"sac": "SAC (SBX)"}
TITLES |= {"ars": NAMES["ars"]}


def returns(runs: Runs, seconds: float) -> str:
    """Return the median of each program's last evaluations until then, and of random actions."""
    there = [key for key in TITLES if any(key == program for _, program in runs)]
    rows = [
        [task, *(after(runs[task, key], seconds) if (task, key) in runs else "-" for key in there)]
        for task in _tasks(runs)
    ]
    return markdown(["task", *(TITLES[key] for key in there)], rows)


def scores(runs: Runs, seconds: float) -> str:
    """Return the interquartile mean of scores: 0 is random actions, 1 the best run of any program."""
    found: dict[str, dict[str, list[float]]] = {key: {} for key in TITLES}
    for task in _tasks(runs):
        for key in TITLES:
            seen = [at(run, seconds) for run in runs.get((task, key), [])]
            if values := [value for value in seen if value is not None]:
                found[key][task] = values
    chance, bounds = found.pop("chance"), {}
    for task, values in chance.items():
        low = statistics.mean(values)
        best = max(value for of in found.values() for value in of.get(task, []))
        bounds[task] = low, best if best > low else low + 1
    rows = []
    for key, of in found.items():
        if own := {task: values for task, values in of.items() if task in bounds}:
            (method,) = score({key: own}, {task: bounds[task] for task in own}).methods
            iqm = method.score
            within = "" if iqm.low is None else f" [{iqm.low:.2f}, {iqm.high:.2f}]"
            rows.append([TITLES[key], str(len(own)), str(method.runs), f"{iqm.value:.2f}{within}"])
    return markdown(["program", "tasks", "runs", "IQM of scores [95 %]"], rows)


def _tasks(runs: Runs) -> list[str]:
    return [task for task in UNSEEN if (task, "escalade") in runs]
