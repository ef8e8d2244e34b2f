"""One run in a report: its tables, its options, and the commands that reproduce it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from escalade.config.commands import changed, text_of, train_command
from escalade.config.files import of_a_script
from escalade.media.curves import numbers_of, table_of
from escalade.media.figure import Array
from escalade.recorders import read_notes
from escalade.storage.tensors import Stored
from escalade.strategies.novelty import read_archive
from escalade.support.numbers import counted, number
from escalade.training.results import updates_of
from escalade.wings.analysis.facts import RunFacts
from escalade.wings.analysis.panels import Archived

_MOST_NOTES = 20  # per run
_OWN = "This run uses your own code: call escalade.train in Python with the same options and code."
_EVOLVED = "This is a run of escalade.evolve: call it in Python with the same module, fitness and options."


@dataclass(frozen=True)
class Reported:
    """A run and its name in a report. Files are read lazily, and only once."""

    facts: RunFacts
    name: str

    @cached_property
    def options(self) -> dict[str, str]:
        """All options as text."""
        return {key: text_of(value) for key, value in self.facts.options.items() if key != "run_dir"}

    @property
    def changed(self) -> list[str]:
        """Names of options that are not at their defaults."""
        return [*self.options] if self.facts.config is None else changed(self.facts.config)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of packages, recorded at the end of a run."""
        found: dict[str, str] = self.facts.summary.get("versions", {})
        return found

    @cached_property
    def workers(self) -> dict[str, Array]:
        """Columns of workers or nodes: generation, steps per second, idle share; empty without workers."""
        table = table_of(self.facts.folder.workers)
        columns = ("generation", "env_steps_per_second", "idle_share") if table.get("generation") else ()
        return {column: numbers_of(table[column]) for column in columns}

    @cached_property
    def archived(self) -> Archived | None:
        """Novelty archive of the latest checkpoint; None without novelty search or before a checkpoint."""

        def read(content: Stored) -> Archived | None:
            behaviors, origins = read_archive(content.tensors)
            return Archived(behaviors, *origins.T) if len(behaviors) else None

        checkpoints = self.facts.folder.checkpoints
        if self.facts.options.get("novelty") is None or not checkpoints.generations():
            return None
        return checkpoints.load_latest(read).checkpoint

    def row(self) -> dict[str, str]:
        """Return a row of the table of runs."""
        facts, summary, options = self.facts, self.facts.summary, self.options
        spread, mean = summary.get("eval_return_std"), facts.latest("eval_return_mean")
        return {
            "run": self.name,
            "trained": facts.task,
            **{option: options.get(option, "-") for option in ("strategy", "seed", "population")},
            "evaluation": number(mean) if spread is None else f"{number(mean)} ± {number(spread)}",
            "best": number(summary.get("best_return")),
            "target": number(facts.target),
            "generations": number(facts.latest("generations")),
            "steps": number(facts.latest("env_steps")),
            "seconds": number(facts.latest("seconds")),
            "ended": summary.get("stop_reason", "not yet"),
        }

    def commands(self) -> list[tuple[str, str]]:
        """Return pairs of a purpose and a command that reproduces the run, or "" if that needs Python."""
        config = self.facts.config
        if config is None:
            return [(_EVOLVED, "")]
        if self.facts.own_size is not None or of_a_script(vars(config)):
            return [(_OWN, "")]
        again = [("Train with the same options and seed until the same limit:", train_command(config))]
        summary = self.facts.summary
        chosen = summary.get("solved") and summary.get("center") is not None  # one of several centers
        if not chosen and (count := updates_of(summary)):
            # Time limits, interrupts and targets changed on resume can stop a repetition at another update.
            nothing_else: dict[str, Any] = {"seconds": None, "env_steps": None, "target_return": None}
            same = train_command(config.replace(generations=count, **nothing_else))
            again.append((f"Repeat exactly the same {counted(count, 'update')} of the center:", same))
        return again

    def notes(self) -> list[str]:
        """Return the notes of the run, and a note if it has not ended."""
        path = self.facts.folder.notes
        written = read_notes(path)
        notes = written[-_MOST_NOTES:]
        if len(written) > len(notes):
            notes.insert(0, f"{len(written) - len(notes)} earlier notes are in {path.name}")
        if not self.facts.summary:
            notes.append("the run has not ended; this report shows its current state")
        return notes
