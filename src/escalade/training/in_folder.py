"""A run in its folder: where it begins, goes on from, and what it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from escalade.media.curves import plot_runs, plotting_available
from escalade.recorders import rewind
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import State, Tensors
from escalade.training.loop import Loop
from escalade.training.progress import Progress
from escalade.training.results import summarize
from escalade.training.versions import versions


@dataclass(frozen=True)
class Checkpoint:
    """What a resumed run goes on from, and what was wrong with later checkpoints."""

    tensors: Tensors
    state: State
    problems: list[str]

    @classmethod
    def latest(cls, folder: RunFolder) -> Checkpoint:
        """The newest whole checkpoint of ``folder``.

        Raises:
            InputError: there is none.
        """
        loaded = folder.checkpoints.load_latest(lambda content: content)
        return cls(*loaded.checkpoint, loaded.problems)

    @property
    def progress(self) -> Progress:
        """How far the run had come."""
        return Progress.from_dict(self.state["progress"])

    def reopened(self) -> Checkpoint:
        """The same, for another target: a solved run goes on."""
        progress = self.progress
        progress.reopen()
        return replace(self, state={**self.state, "progress": progress.to_dict()})


def rewind_folder(folder: RunFolder, checkpoint: Checkpoint) -> int:
    """Drop what is later than the checkpoint; how many recorded generations that were."""
    folder.forget_after(checkpoint.progress.generation)
    return rewind(folder.progress, checkpoint.progress.rows)


def go_on(loop: Loop, folder: RunFolder, checkpoint: Checkpoint, lost: int) -> None:
    """Take over the checkpoint, and say from where the run goes on; ``lost`` generations run again.

    Raises:
        InputError: it belongs to another strategy, policy or module.
    """
    for problem in checkpoint.problems:
        loop.notes.say(f"{problem}: going on from the checkpoint before it")
    loop.load_state(checkpoint.tensors, checkpoint.state)
    before = checkpoint.state["versions"]
    if before != versions():
        loop.notes.say(f"the run was saved with {before}, this is {versions()}: last bits may differ")
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
