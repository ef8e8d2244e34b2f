"""The tasks of the comparisons, from tasks.toml and unseen.toml, and the paths of the results.

Needs only the standard library.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "peers.jsonl"
UNSEEN_RESULTS = HERE.parent / "results" / "unseen.jsonl"
UNSEEN_LONGER = HERE.parent / "results" / "unseen_five_minutes.jsonl"


@dataclass(frozen=True)
class Task:
    """A row of tasks.toml: the mean return to reach over 100 fresh episodes of ``env``."""

    name: str
    env: str
    target: float = float("inf")
    kwargs: dict[str, Any] = field(default_factory=dict)
    hard: bool = False
    """True if Escalade needs minutes."""
    unseen: bool = False
    """True if it is an EnvPool task not used to choose settings; it has neither target nor preset."""
    discrete: bool = False
    """True if an unseen task has discrete actions."""

    @property
    def settings(self) -> str:
        """Return the key of the task's table in a program's settings."""
        return "unseen" if self.unseen else self.name

    def make(self) -> Any:
        """Return one environment of Gymnasium or EnvPool."""
        if self.unseen:
            from pools import flat

            return flat(self.env)
        import gymnasium

        return gymnasium.make(self.env, **self.kwargs)


def _read(file: str, **more: Any) -> dict[str, Task]:
    rows = tomllib.loads((HERE / file).read_text())
    return {name: Task(name, **{"env": name, **row, **more}) for name, row in rows.items()}


TASKS = _read("tasks.toml")
"""Tasks with a target, in the table's order."""
UNSEEN = _read("unseen.toml", unseen=True)
EVERY = TASKS | UNSEEN
