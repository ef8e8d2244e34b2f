"""Evaluate every program of the comparison by return against seconds, on the same terms.

A program trains, and offers its policy now and then. The judge evaluates it over ten episodes, as often as a
tenth of the time allows, and over a hundred fresh ones when the ten reach the target. Seconds count from the
start of the process: imports, evaluations and all. Each evaluation is a line of JSON on standard output.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
from tasks import EVERY, HERE, Task

SHARE = 0.1  # of the time, for evaluations
FEW, MANY = 10, 100
Act = Callable[[Any], Any]
"""Deterministic actions of a batch of observations."""


def settings(program: str, *keys: str) -> dict[str, Any]:
    """Return the settings of PROGRAM.toml under the first of ``keys``, overridden by the later ones."""
    table, found = tomllib.loads((HERE / f"{program}.toml").read_text()), {}
    for key in keys:
        found |= table.get(key, {})
    return found


def arguments() -> Any:
    """Parse the command line of a program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=EVERY)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args()
    given.task = EVERY[given.task]
    return given


class Done(Exception):
    """Raised when the task is solved or the time is over."""


class Judge:
    """Evaluates policies on ``task`` until one solves it, or ``seconds`` have passed."""

    def __init__(self, task: Task, seed: int, seconds: float) -> None:
        self.task, self.seconds = task, seconds
        self._born = psutil.Process().create_time()
        self._envs = [task.make() for _ in range(FEW)]
        self.space = self._envs[0].action_space
        self._seed = 1_000_000 * (1 + seed)
        self._spent = 0.0

    def look(self, act: Act, env_steps: int) -> None:
        """Evaluate the policy, if it is time to.

        Raises:
            Done: the task is solved, or the time is over.
        """
        now = time.time() - self._born
        if self._spent > SHARE * now and now < self.seconds:
            return
        mean = self.evaluate(act, FEW, env_steps)
        if mean >= self.task.target and self.evaluate(act, MANY, env_steps) >= self.task.target:
            self._write(solved=True)
            raise Done
        if now >= self.seconds:
            self._write(solved=False)
            raise Done

    def evaluate(self, act: Act, episodes: int, env_steps: int) -> float:
        """Return the mean return of fresh episodes, and print it."""
        began, returns = time.time(), []
        while len(returns) < episodes:
            returns += self._ten(act)
        self._spent += time.time() - began
        mean = float(np.mean(returns))
        self._write(env_steps=int(env_steps), episodes=episodes, mean=round(mean, 3))
        return mean

    def _ten(self, act: Act) -> list[float]:
        """Return the returns of one episode per environment."""
        self._seed += FEW
        seen = [env.reset(seed=self._seed + k)[0] for k, env in enumerate(self._envs)]
        returns, running = np.zeros(FEW), np.ones(FEW, bool)
        while running.any():
            rows = np.flatnonzero(running)
            for row, action in zip(rows, act(np.stack([seen[row] for row in rows])), strict=True):
                seen[row], reward, terminated, truncated, _ = self._envs[row].step(action)
                returns[row] += float(reward)
                running[row] = not (terminated or truncated)
        return [float(value) for value in returns]

    def _write(self, **what: Any) -> None:
        print(json.dumps({"seconds": round(time.time() - self._born, 2), **what}))
        sys.stdout.flush()
