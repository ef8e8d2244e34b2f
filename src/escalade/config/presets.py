"""One TOML file per environment: what to train it with, and the result that reached."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escalade.config.conversion import Values, from_values, parse_toml
from escalade.errors import InputError, nearest
from escalade.strategies.registry import STRATEGY_OPTIONS

_FOLDER = Path(__file__).parent / "tuned"
_RESULT = ("solved", "seeds", "env_steps", "all_steps")
"""What a preset must say of its result; ``seconds`` too, once it has been timed."""


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
        InputError: there is none, or its file is not one of ours.
    """
    path = _FOLDER / f"{name}.toml"
    if name not in names():
        raise InputError(
            f"there is no preset {name!r}{nearest(name, names())}: 'escalade presets' lists them"
        )
    content = parse_toml(path)
    config, result = content.get("config"), content.get("result")
    if not isinstance(config, dict) or not isinstance(result, dict):
        raise InputError(f"preset {path} must have the tables [config] and [result]")
    found = Preset(name, from_values(config, str(path)), result)
    if missing := [needed for needed in ("strategy", "target_return") if needed not in found.options]:
        raise InputError(f"preset {path} must say its {missing[0]}")
    if missing := [needed for needed in _RESULT if needed not in result]:
        raise InputError(f"preset {path} must say {missing[0]} in its [result]")
    return found


def options(env: str, preset: str | None, given: Values | None = None) -> Values:
    """Options for ``env``: of its own preset with ``auto``, of a named one, or none with None or ``none``.

    Its own preset is the one made for the environment with these ``env_kwargs``: of those made for ``env``
    with arguments that are all given, the one with the most.

    Args:
        env: a Gymnasium id.
        preset: ``auto``, a name, ``none`` or None.
        given: options that win over the preset's. Where their ``strategy`` is another than the preset's, what
            was tuned for the preset's is left out.

    Raises:
        InputError: there is no preset of that name.
    """
    given = given or {}
    name = _own(env, given.get("env_kwargs", {})) if preset == "auto" else preset
    if name in (None, "none"):
        return {}
    found = read(str(name)).options
    if env == name != found["env"]:  # another name for the same environment, which needs no arguments
        found = {option: value for option, value in found.items() if option != "env_kwargs"} | {"env": env}
    if given.get("strategy") in (None, found["strategy"]):
        return found
    return {name: value for name, value in found.items() if name not in (*STRATEGY_OPTIONS, "momentum")}


def _own(env: str, kwargs: Values) -> str | None:
    """The name of the preset made for ``env`` with these arguments, if there is one."""
    fitting = {env: 0} if env in names() else {}
    for name in names():
        made_for = parse_toml(_FOLDER / f"{name}.toml").get("config", {})
        needed = made_for.get("env_kwargs", {})
        if made_for.get("env") == env and needed.items() <= kwargs.items():
            fitting[name] = len(needed)
    return max(fitting, key=lambda name: fitting[name], default=None)
