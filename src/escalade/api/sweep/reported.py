"""What a report says of a sweep, and which runs stand for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from escalade.api.sweep.results import HISTORY, IMPORTANCE, PARALLEL, PLAN, load_sweep
from escalade.config.commands import text_of
from escalade.errors import InputError
from escalade.media.report import Swept
from escalade.support.numbers import number

_PICTURES = (
    ("Return of the trials", HISTORY),
    ("How much each option matters", IMPORTANCE),
    ("Options and returns", PARALLEL),
)


def with_sweeps(places: Sequence[Path]) -> tuple[list[Path], list[Swept]]:
    """The run folders among ``places``, each sweep replaced by the runs of its best trial; and the sweeps.

    Raises:
        InputError: a sweep is at work, its files are damaged, or none of its trials ended.
    """
    runs: list[Path] = []
    sweeps: list[Swept] = []
    for place in places:
        if (place / PLAN).is_file():
            best, swept = _read(place)
            runs += best
            sweeps.append(swept)
        else:
            runs.append(place)
    return runs, sweeps


def _read(place: Path) -> tuple[list[Path], Swept]:
    found = load_sweep(place)
    if found.best is None or found.best.value is None:
        raise InputError(f"{place}: no trial of this sweep has ended; go on with `escalade sweep`")
    states = Counter(trial.state for trial in found.trials)
    facts = {"trials": str(len(found.trials))} | {state: str(count) for state, count in states.items()}
    facts |= {"best trial": str(found.best.number), "its return": number(found.best.value)}
    pictures = [(title, place / name) for title, name in _PICTURES if (place / name).is_file()]
    chosen = {name: text_of(value) for name, value in found.best.params.items()}
    return found.runs(found.best), Swept(place.resolve().name, facts, chosen, pictures)
