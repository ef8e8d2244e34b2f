"""The tasks of the comparisons, by tasks.toml and unseen.toml, and where the results are.

Needs nothing but Python itself.
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
    """A row of tasks.toml: what a policy must reach on average over 100 fresh episodes of ``env``."""

    name: str
    env: str
    target: float = float("inf")
    kwargs: dict[str, Any] = field(default_factory=dict)
    hard: bool = False
    """Whether it takes Escalade minutes."""
    unseen: bool = False
    """Whether it is one of EnvPool's that no setting was chosen on: no target, no preset."""
    discrete: bool = False
    """Whether its actions are choices, where it is unseen."""

    @property
    def settings(self) -> str:
        """The table of a program's settings that is for it."""
        return "unseen" if self.unseen else self.name

    def make(self) -> Any:
        """One environment, Gymnasium's or EnvPool's."""
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
