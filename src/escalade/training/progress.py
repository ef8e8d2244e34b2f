"""The progress of a run: the part of its state that is numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

_MOST_SECONDS = 10**12


@dataclass(frozen=True)
class Counts:
    """The cost of generations."""

    episodes: int = 0
    """Episodes of members, or calls of a fitness function for them."""
    env_steps: int = 0
    """Environment steps of those episodes."""
    eval_episodes: int = 0
    """Episodes (or calls) of the unperturbed policy: evaluations, and what confirms that a target is met."""
    eval_steps: int = 0
    """Environment steps of those."""
    seconds: float = 0.0
    failed: int = 0
    """Episodes of members that failed, or gave no usable number."""
    eval_failed: int = 0
    """Episodes of the unperturbed policy that did."""

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= _MOST_SECONDS:
            raise TypeError(f"{self.seconds} s are no time that a run can take")

    def __add__(self, more: Counts) -> Counts:
        return Counts(*(getattr(self, part.name) + getattr(more, part.name) for part in fields(Counts)))


@dataclass
class Progress:
    """Counts, the last and the best evaluation, and whether the target was met."""

    generation: int = 0
    """The number of updates of the centre."""
    updates: Counts = Counts()
    """The cost of those generations."""
    solving: Counts | None = None
    """The cost of the generation that met the target: it ran, but it did not update the centre."""
    target_streak: int = 0
    """Evaluations in a row that met the target."""
    tries: int = 0
    """The number of times that it was to be confirmed that the target, or one about as hard, is met."""
    tried: list[float] = field(default_factory=list)
    """For each such time in the run, the target beyond which another is clearly harder."""
    eval_return_mean: float | None = None
    eval_return_std: float | None = None
    eval_episodes: int = 0
    """Episodes of that last evaluation."""
    eval_failed: int = 0
    """Episodes of it that failed: they count as the worst of the others."""
    evaluated: int | None = None
    """The updates that the centre had seen then."""
    eval_center: int | None = None
    """The number of the centre that it was of, where there are several."""
    best_return: float | None = None
    best_generation: int | None = None
    notes: dict[str, int] = field(default_factory=dict)
    """The number of times that each kind of note came up."""
    said: int = 0
    """Notes in all."""

    @property
    def solved(self) -> bool:
        """True where the target was met, and confirmed."""
        return self.solving is not None

    @property
    def total(self) -> Counts:
        """The cost of the run, the generation that met the target included."""
        return self.updates if self.solving is None else self.updates + self.solving

    @property
    def rows(self) -> int:
        """Generations, as rows and summary count them: the one that met the target is no update, and one."""
        return self.generation + self.solved

    def count(self, counts: Counts, *, solved: bool) -> None:
        """Count a generation: one that met the target, or another update of the centre."""
        if solved:
            self.solving = counts
        else:
            self.generation += 1
            self.updates += counts

    def reopen(self, target: float | None, direction: float = 1.0) -> None:
        """Let a run go on for another ``target``; of a solved one, the last generation runs again.

        Only a target that is clearly harder than that of an earlier try begins without that try: else every
        small change would have the next confirmation count as the first, and one of many is luck.
        """
        self.solving, self.target_streak = None, 0
        if target is not None:
            self.tries = sum(direction * (target - bound) <= 0 for bound in self.tried)
