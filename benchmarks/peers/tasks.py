"""The tasks of the comparison, by tasks.toml, and where its results are. Needs nothing but Python itself."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "peers.jsonl"


@dataclass(frozen=True)
class Task:
    """A row of tasks.toml: what a policy must reach on average over 100 fresh episodes of ``env``."""

    name: str
    env: str
    target: float
    kwargs: dict[str, Any] = field(default_factory=dict)
    hard: bool = False
    """Whether it takes Escalade minutes."""


TASKS: dict[str, Task] = {
    name: Task(name, **{"env": name, **row})
    for name, row in tomllib.loads((HERE / "tasks.toml").read_text()).items()
}
"""All tasks, in the table's order."""
