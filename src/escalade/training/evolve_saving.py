"""The file that a run of :func:`escalade.evolve` saves: safetensors, and never code."""

from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np

from escalade.errors import InputError
from escalade.storage.tensors import State, Tensors, read, write
from escalade.strategies import Strategy
from escalade.strategies.saving import save_strategy
from escalade.training.evolve_records import Generation

_KIND = "escalade-evolution-1"


def write_saved(path: Path, strategy: Strategy, tensors: Tensors, state: State) -> None:
    """Write the strategy's state and the run's own.

    Raises:
        InputError: the path cannot be written.
        StorageFailure: the disk is full.
    """
    own, numbers = save_strategy(strategy)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, tensors | own, state | {"kind": _KIND, "numbers": numbers})
    except (InputError, OSError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem).rpartition("(")[2].partition(")")[0]
        raise InputError(f"save_path {path} cannot be written ({reason}): choose another") from None


def read_saved(path: Path) -> tuple[Tensors, State]:
    """Read what :func:`write_saved` wrote.

    Raises:
        InputError: the file is not there, damaged, or not one that evolve saved.
    """
    tensors, state = read(path)
    if state.get("kind") != _KIND:
        raise InputError(f"{path} is not a file that evolve saved")
    return tensors, state


def history_table(history: list[Generation]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The rows as numbers, shape (generations, columns); a missing score is NaN."""
    rows = [[np.nan if value is None else float(value) for value in astuple(row)] for row in history]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(fields(Generation)))


def history_rows(table: np.ndarray[Any, np.dtype[np.float64]]) -> list[Generation]:
    """What :func:`history_table` was made of."""
    rows = []
    for numbers in table.tolist():
        row = dict(zip((part.name for part in fields(Generation)), numbers, strict=True))
        whole = {name: int(row[name]) for name in ("generation", "evaluations", "nonfinite")}
        score = None if np.isnan(row["score"]) else row["score"]
        rows.append(Generation(**(row | whole | {"score": score})))
    return rows
