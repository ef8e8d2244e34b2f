"""What is recorded of a generation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol


@dataclass(frozen=True)
class Row:
    """One row of progress.csv. Returns are of the population unless they say eval."""

    generation: int
    episodes: int
    env_steps: int
    seconds: float
    return_mean: float
    return_std: float
    return_min: float
    return_max: float
    episode_length_mean: float
    eval_return_mean: float | None
    unperturbed_rank: int | None
    sigma: float
    lr: float
    update_ratio: float
    steps_per_second: float


COLUMNS = tuple(column.name for column in fields(Row))


class Recorder(Protocol):
    """Is told of a run as it goes."""

    def generation(self, row: Row) -> None:
        """A generation was done."""
        ...

    def note(self, text: str) -> None:
        """Something the user should know happened."""
        ...

    def close(self) -> None:
        """The run is over."""
        ...
