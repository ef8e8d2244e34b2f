"""A sweep's folder as a report shows it."""

from __future__ import annotations

from pathlib import Path

from escalade.api.collections import Collection
from escalade.errors import InputError
from escalade.support.numbers import number
from escalade.wings.many_runs.sweep import best_of, load_sweep, states, trial_folder
from escalade.wings.many_runs.sweep_pictures import PICTURES


def collection_of(place: Path) -> Collection:
    """Read what a report shows of the sweep in ``place``.

    Raises:
        InputError: a sweep is at work in it, its files are damaged, or none of its trials is complete.
    """
    study = load_sweep(place)
    if (best := best_of(study)) is None:
        raise InputError(f"{place}: no trial of this sweep has ended; go on with 'escalade sweep'")
    facts = {**states(study), "best trial": best.number, "its return": number(best.value)}
    shown, chosen = ({key: str(one) for key, one in table.items()} for table in (facts, best.params))
    drawn = [(title, place / name) for name, (title, _) in PICTURES.items() if (place / name).is_file()]
    runs = trial_folder(place, best.number)
    return Collection(place.resolve().name, runs, shown, chosen, drawn)
