"""A run in its folder: where it begins, goes on from, and what it leaves."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from escalade.errors import InputError
from escalade.media.curves import plot_runs, plotting_available
from escalade.recorders import rewind
from escalade.storage.checkpoints import Loaded
from escalade.storage.records import record
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import Damaged, Stored
from escalade.strategies import Strategy
from escalade.strategies.saving import load_strategy
from escalade.training.loop import Loop
from escalade.training.progress import Progress
from escalade.training.results import summarize
from escalade.training.versions import versions


@dataclass(frozen=True)
class Checkpoint:
    """What a resumed run goes on from: a file's content, of which the part that all runs share is checked."""

    content: Stored
    progress: Progress
    """How far the run had come."""
    versions: dict[str, str]
    """What it ran with."""

    @classmethod
    def of(cls, content: Stored) -> Checkpoint:
        """Check a file's content.

        Raises:
            Damaged: it is no run's state, or the state of another version's run.
        """
        shared = {name: content.state.get(name) for name in ("progress", "versions", "strategy")}
        facts = record(_Shared, shared, "its state")
        return cls(content, Progress.from_dict(facts.progress), facts.versions)

    def reopened(self) -> Checkpoint:
        """The same, for another target: a solved run goes on."""
        progress = copy.deepcopy(self.progress)
        progress.reopen()
        state = {**self.content.state, "progress": progress.to_dict()}
        return replace(self, content=Stored(self.content.tensors, state), progress=progress)

    def check_strategy(self, strategy: Strategy) -> None:
        """Load the strategy's state into ``strategy``, to see that it can be.

        Raises:
            Damaged: it is another strategy's, or of another size.
        """
        try:
            load_strategy(strategy, self.content.tensors, self.content.state["strategy"])
        except InputError as problem:
            raise Damaged(str(problem)) from None
        if strategy.generation != self.progress.generation:
            raise Damaged("its strategy is at another generation than its progress")


@dataclass(frozen=True)
class _Shared:
    progress: dict[str, Any]
    versions: dict[str, str]
    strategy: dict[str, Any]


def rewind_folder(folder: RunFolder, checkpoint: Checkpoint) -> int:
    """Drop what is later than the checkpoint; how many recorded generations that were."""
    folder.forget_after(checkpoint.progress.generation)
    return rewind(folder.progress, checkpoint.progress.rows)


def go_on(loop: Loop, folder: RunFolder, loaded: Loaded[Checkpoint], lost: int) -> None:
    """Take over the checkpoint, and say from where the run goes on; ``lost`` generations run again."""
    checkpoint = loaded.checkpoint
    for problem in loaded.problems:
        loop.notes.say(f"{problem}: going on from the checkpoint before it")
    loop.load_state(*checkpoint.content)
    if checkpoint.versions != versions():
        loop.notes.say(
            f"the run was saved with {checkpoint.versions}, this is {versions()}: last bits may differ"
        )
    again = f": {lost} later ones have no checkpoint and are run again" if lost else ""
    loop.notes.say(f"resuming {folder.path} after generation {loop.progress.generation}{again}")


def run_in_folder(
    loop: Loop, folder: RunFolder | None, what: Mapping[str, Any], where: Mapping[str, Any]
) -> dict[str, Any]:
    """Run the loop, then save the module and the summary, which is returned.

    ``what`` was run and ``where``, for the summary; without ``folder`` nothing is written.
    """
    reason = loop.run()
    loop.objective.save_module(loop.strategy)
    summary = summarize(loop, reason, what, where)
    if folder is not None:
        folder.write_summary(summary)
    return summary


def draw_curve(folder: RunFolder, summary: Mapping[str, Any], title: str) -> None:
    """Draw curve.png, where matplotlib is installed and there is something to draw."""
    if plotting_available() and summary["generations"]:
        plot_runs([folder.path], folder.curve, summary["target_return"], title)
