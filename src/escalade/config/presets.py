"""One TOML file per environment: what to train it with, and the result that reached."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escalade.config.conversion import Values, from_values
from escalade.errors import InputError, nearest
from escalade.strategies.registry import STRATEGY_OPTIONS

_FOLDER = Path(__file__).parent / "tuned"


@dataclass(frozen=True)
class Preset:
    """Options of :class:`escalade.config.options.Config`, and measured results."""

    name: str
    options: Values
    result: dict[str, Any]


def names() -> list[str]:
    """Environments that have a preset."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read(name: str) -> Preset:
    """The preset called ``name``.

    Raises:
        InputError: there is none.
    """
    path = _FOLDER / f"{name}.toml"
    if name not in names():
        raise InputError(
            f"there is no preset {name!r}{nearest(name, names())}: 'escalade presets' lists them"
        )
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return Preset(name, from_values(content["config"], path.name), content["result"])


def options(env: str, preset: str | None, strategy: str | None = None) -> Values:
    """Options for ``env``: of its own preset with ``auto``, of a named one, or none with None or ``none``.

    Where ``strategy`` is another than the preset's, what was tuned for the preset's is left out.
    """
    if preset in (None, "none") or (preset == "auto" and env not in names()):
        return {}
    found = read(env if preset == "auto" else str(preset)).options
    if strategy in (None, found["strategy"]):
        return found
    return {name: value for name, value in found.items() if name not in (*STRATEGY_OPTIONS, "momentum")}
