"""The progress of a run: its counts, its evaluations and its target."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

_MOST_SECONDS = 10**12


@dataclass(frozen=True)
class Counts:
    """Episodes, steps and seconds of generations."""

    episodes: int = 0
    """Episodes of members, or fitness calls for members."""
    env_steps: int = 0
    """Environment steps in episodes of members."""
    eval_episodes: int = 0
    """Episodes (or fitness calls) of the unperturbed policy, in evaluations and confirmations."""
    eval_steps: int = 0
    """Environment steps in episodes of the unperturbed policy."""
    seconds: float = 0.0
    failed: int = 0
    """Episodes of members that failed or had no usable return."""
    eval_failed: int = 0
    """Episodes of the unperturbed policy that failed or had no usable return."""

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= _MOST_SECONDS:
            raise TypeError(f"{self.seconds} s is not a possible duration of a run")

    def __add__(self, more: Counts) -> Counts:
        return Counts(*(getattr(self, part.name) + getattr(more, part.name) for part in fields(Counts)))


@dataclass
class Progress:
    """Counts, the last and the best evaluation, and confirmations of the target."""

    generation: int = 0
    """Number of updates of the center."""
    updates: Counts = Counts()
    """Counts of the generations that updated the center."""
    solving: Counts | None = None
    """Counts of the generation that met the target. It does not update the center."""
    target_streak: int = 0
    """Number of consecutive evaluations that met the target."""
    tries: int = 0
    """Number of confirmations of the target, or of a target about as hard."""
    tried: list[float] = field(default_factory=list)
    """For each confirmation of the run, the value beyond which a new target is clearly harder."""
    eval_return_mean: float | None = None
    eval_return_std: float | None = None
    eval_episodes: int = 0
    """Episodes of the last evaluation."""
    eval_failed: int = 0
    """Failed episodes of the last evaluation, which count as the worst of the others."""
    evaluated: int | None = None
    """Number of updates of the center at the last evaluation."""
    eval_center: int | None = None
    """Number of the center of the last evaluation, in a run with several."""
    best_return: float | None = None
    best_generation: int | None = None
    notes: dict[str, int] = field(default_factory=dict)
    """Number of notes of each kind."""
    said: int = 0
    """Number of all printed notes."""

    @property
    def solved(self) -> bool:
        """True if the target was met and confirmed."""
        return self.solving is not None

    @property
    def total(self) -> Counts:
        """Counts of the run, including the generation that met the target."""
        return self.updates if self.solving is None else self.updates + self.solving

    @property
    def rows(self) -> int:
        """Number of generations in rows and summary, including the one that met the target."""
        return self.generation + self.solved

    def count(self, counts: Counts, *, solved: bool) -> None:
        """Add a generation: one that met the target if ``solved``, else an update of the center."""
        if solved:
            self.solving = counts
        else:
            self.generation += 1
            self.updates += counts

    def reopen(self, target: float | None, direction: float = 1.0) -> None:
        """Continue a run with a new ``target``.

        The last generation of a solved run is repeated. Earlier confirmations still count, unless the new
        target is clearly harder than theirs. Otherwise any small change of the target would make the next
        confirmation the first, and one of many is luck.
        """
        self.solving, self.target_streak = None, 0
        if target is not None:
            self.tries = sum(direction * (target - bound) <= 0 for bound in self.tried)
