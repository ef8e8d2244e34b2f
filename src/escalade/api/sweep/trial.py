"""A process that runs trials: tasks come as lines of JSON on its input, and it answers with such lines.

``python -m escalade.api.sweep.trial`` is started by :mod:`escalade.api.sweep.crew`, once for each job. It
knows nothing of Optuna: it reports evaluations, and is told whether to go on.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any, TextIO

from escalade.config.conversion import from_values
from escalade.config.options import Config
from escalade.config.sweep import BUDGETS
from escalade.errors import EscaladeError
from escalade.recorders.progress import read_progress
from escalade.storage.run_folder import RunFolder
from escalade.support.interrupts import SIGNALS, Interrupts
from escalade.support.own_process import claim

if TYPE_CHECKING:
    from escalade.training.loop import View

PARTS = 20
"""Parts that a run's budget is cut in; after each, its latest evaluation is reported."""

Ask = Callable[[int, float], bool]
"""Reports a value at a part of a trial; whether the trial is to end there."""


class Watch:
    """A callback of a run that reports its evaluations.

    Args:
        config: of the run.
        ask: is given the value of each part that has passed.
        done: parts of the trial before this run.
        before: the results of its earlier runs; a value is the mean with those.
    """

    def __init__(self, config: Config, ask: Ask, done: int, before: list[float]) -> None:
        self._limits = {name: limit for name in BUDGETS if (limit := getattr(config, name)) is not None}
        self._ask, self._done, self._before = ask, done, before
        self._part = 0
        self._latest = math.nan
        self._parent = os.getppid()
        self.pruned = False

    def __call__(self, view: View) -> bool:
        """Stop the run where it is pruned, and where nobody is there any more to ask."""
        if os.getppid() != self._parent:
            return True
        row = view.row
        return self.see(row.generation, row.env_steps or 0, row.seconds, row.eval_return_mean)

    def see(self, generation: float, env_steps: float, seconds: float, evaluation: float | None) -> bool:
        """Report the parts of the budget that a generation completes; whether the run is pruned."""
        if evaluation is not None and math.isfinite(evaluation):
            self._latest = evaluation
        spent = {"generations": generation, "env_steps": env_steps, "seconds": seconds}
        part = int(PARTS * max(spent[name] / limit for name, limit in self._limits.items()))
        while self._part < min(part, PARTS - 1) and math.isfinite(self._latest) and not self.pruned:
            self._part += 1  # at the end of the budget, the run's result counts
            self.pruned = self._ask(self._done + self._part, fmean([*self._before, self._latest]))
        return self.pruned


def run_trial(task: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
    """Run a trial's runs one after the other, or what is missing of them; what to answer."""
    results: list[float] = []
    for number, values in enumerate(task["configs"]):
        config = Config(**from_values(values))  # JSON has no tuples
        watch = Watch(config, ask, number * PARTS, results)
        summary = _run(config, watch)
        if watch.pruned:
            return {"pruned": True}
        if summary["stop_reason"] in ("interrupted", "callback"):
            return {"interrupted": True}
        if summary["eval_return_mean"] is None:
            return {"failed": f"{config.run_dir}: its last evaluation is not a number"}
        results.append(summary["eval_return_mean"])
        last = (number + 1) * PARTS
        if number + 1 < len(task["configs"]) and ask(last, fmean(results)):
            return {"pruned": True}
    return {"value": fmean(results)}


def _run(config: Config, watch: Watch) -> dict[str, Any]:
    """Run or go on with a run; its summary."""
    from escalade.api.train import resume, train_config

    folder = RunFolder(str(config.run_dir))
    if not folder.config.exists():
        return train_config(config, verbose=False, callbacks=[watch]).summary
    summary = folder.read_summary()
    if summary.get("stop_reason") not in (None, "interrupted", "callback") or _see_again(folder, watch):
        return summary
    return resume(folder, verbose=False, callbacks=[watch], workers=config.workers).summary


def _see_again(folder: RunFolder, watch: Watch) -> bool:
    """Report what came before the checkpoint that a run goes on from; whether that prunes it.

    What was reported already is not taken twice. A run may have ended between a generation and its report.
    """
    generation = max(folder.checkpoints.generations(), default=0)
    if not folder.progress.exists():
        return False
    columns = read_progress(folder.progress)
    names = ("generation", "env_steps", "seconds", "eval_return_mean")
    rows = zip(*(columns[name] for name in names), strict=True)
    return any(watch.see(*row) for row in rows if row[0] <= generation)


def main() -> None:
    """Answer tasks until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    for number in SIGNALS:
        signal.signal(number, lambda number, frame: os._exit(130))
    Interrupts.leave = staticmethod(lambda: os._exit(130))
    claim()
    while line := sys.stdin.readline():
        _say(answers, _answer(json.loads(line), answers))


def _answer(task: Mapping[str, Any], answers: TextIO) -> dict[str, Any]:
    def ask(part: int, value: float) -> bool:
        _say(answers, {"part": part, "at": value})
        return bool(json.loads(sys.stdin.readline() or "{}").get("prune", True))

    try:
        return run_trial(task, ask)
    except EscaladeError as problem:
        return {"failed": str(problem)}
    except BrokenPipeError:  # nobody is there any more: the run was saved at its last checkpoint
        os._exit(1)


def _say(answers: TextIO, answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
