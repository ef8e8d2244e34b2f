"""One TOML file a preset: what to train an environment with, and the result that reached, once measured.

A preset is called like its file below ``tuned/``. One that is called like an environment is that one's own;
the others, such as ``openai/humanoid``, which are the settings of earlier systems, are asked for by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escalade.config.conversion import Values, from_values, parse_toml
from escalade.errors import InputError, nearest
from escalade.strategies.registry import STRATEGY_OPTIONS

_FOLDER = Path(__file__).parent / "tuned"
_OF_STRATEGY = (*STRATEGY_OPTIONS, "momentum", "min_episodes", "min_env_steps", "max_population")
_RESULT = ("solved", "seeds", "env_steps", "all_steps", "seconds")


@dataclass(frozen=True)
class Preset:
    """Options of :class:`escalade.config.options.Config`, and measured results."""

    name: str
    options: Values
    result: dict[str, Any] | None
    """None where nobody has measured it."""


def names() -> list[str]:
    """What the presets are called."""
    return sorted(
        str(path.relative_to(_FOLDER).with_suffix("").as_posix()) for path in _FOLDER.rglob("*.toml")
    )


def read(name: str) -> Preset:
    """The preset called ``name``.

    Raises:
        InputError: there is none, or its file is not one of ours.
    """
    if name not in names():
        raise InputError(
            f"there is no preset {name!r}{nearest(name, names())}: 'escalade presets' lists them"
        )
    path = _FOLDER / f"{name}.toml"
    content = parse_toml(path)
    config, result = content.get("config"), content.get("result")
    if not isinstance(config, dict) or not isinstance(result, dict | None):
        raise InputError(f"preset {path} must have the table [config], and [result] if it was measured")
    found = Preset(name, from_values(config, str(path)), result)
    wanted = ("env", "strategy", "population") if result is None else ("env", "strategy", "target_return")
    if missing := [needed for needed in wanted if needed not in found.options]:
        raise InputError(f"preset {path} must say its {missing[0]}")
    if missing := [needed for needed in _RESULT if result is not None and needed not in result]:
        raise InputError(f"preset {path} must say {missing[0]} in its [result]")
    return found


def options(env: str, preset: str | None, strategy: str | None = None) -> Values:
    """Options for ``env``: of its own preset with ``auto``, of a named one, or none with None or ``none``.

    Where ``strategy`` is another than the preset's, what was tuned for the preset's is left out.
    """
    if preset in (None, "none") or (preset == "auto" and env not in names()):
        return {}
    found = read(env if preset == "auto" else str(preset)).options
    if strategy in (None, found["strategy"]):
        return found
    left = {name: value for name, value in found.items() if name not in _OF_STRATEGY}
    if ":" in str(left.get("sigma")):  # a schedule, which not every strategy takes
        del left["sigma"]
    return left
