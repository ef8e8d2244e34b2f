"""The result of training: the run's folder, its summary, and the policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from escalade.policies.policy import Policy
from escalade.recorders import History, read_rows
from escalade.storage.run_folder import RunFolder
from escalade.support.shown import shown, table

_FACTS = (
    *("strategy", "eval_return_mean", "eval_return_std", "target_return"),
    *("generations", "env_steps", "seconds", "stop_reason"),
)
"""The entries of the summary that are shown of a run."""


@dataclass(frozen=True, repr=False)
class Run:
    """A finished (or interrupted) run: its folder, its summary, and the policy it trained.

    It can be given wherever the folder's path can.
    """

    folder: RunFolder
    summary: dict[str, Any]
    policy: Policy

    @property
    def history(self) -> History:
        """Every generation of the run so far, as progress.csv has them."""
        return History(read_rows(self.folder.progress))

    def __fspath__(self) -> str:
        return str(self.folder.path)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={shown(self.summary[name])}" for name in _FACTS[1:])
        return f"Run({str(self.folder.path)!r}, {facts})"

    def _repr_html_(self) -> str:
        facts = {name: shown(self.summary[name]) for name in _FACTS}
        return table(f"{self.summary['env']} in {self.folder.path}", facts)
