"""Presets: tuned options of environments, and their measured results, in one TOML file each.

The name of a preset is the path of its file below ``tuned/``. A preset with the name of an environment
applies to it by default. The others, such as ``openai/humanoid``, are settings of earlier systems.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escalade.config.conversion import Values, from_values, parse_toml
from escalade.config.options import OPTIONS, Config
from escalade.config.strategy_text import layered
from escalade.errors import InputError, nearest
from escalade.policies.architectures.registry import ARCHITECTURES

_FOLDER = Path(__file__).parent / "tuned"
OF_STRATEGY = {name for name, option in OPTIONS.items() if option.metadata["group"] == "strategy"} | {
    *("cutoff", "action_noise", "episodes_per_member", "episode_seeds")
}
"""Options that were tuned for a preset's strategy.

The others define the problem, which is the same for all strategies: the environment with its frames and
reward, the policy, evaluation, target and budget.
"""
GAMES = "ALE/games"
"""The preset of all Atari games without a preset of their own."""
_LOOKS = {"policy", "env_kwargs", "wrappers", "grayscale", "crop", "resize", "frame_stack"}
"""Options of the policy and its view of a game. If the user sets any of them, :data:`GAMES` is not used."""


@dataclass(frozen=True)
class Preset:
    """Options of :class:`escalade.config.options.Config`, and measured results."""

    name: str
    options: Values
    result: dict[str, Any] | None
    """None if the preset was not measured."""


def names() -> list[str]:
    """Return the names of the presets, sorted."""
    return sorted(
        str(path.relative_to(_FOLDER).with_suffix("").as_posix()) for path in _FOLDER.rglob("*.toml")
    )


def read(name: str) -> Preset:
    """Read the preset called ``name``.

    Raises:
        InputError: there is no such preset.
    """
    if name not in names():
        raise InputError(
            f"there is no preset {name!r}{nearest(name, names())}; 'escalade presets' lists all presets"
        )
    content = parse_toml(_FOLDER / f"{name}.toml")
    return Preset(name, from_values(content["config"], name), content.get("result"))


def options(
    env: str, preset: str | None, overrides: Values | None = None, report: Callable[[str], None] | None = None
) -> Values:
    """Return the options of a preset that apply to ``env``.

    With ``auto``, the preset is the one for ``env`` with the ``env_kwargs`` in ``overrides``. If several
    presets have a subset of these arguments, it is the one with the most.

    Args:
        env: a Gymnasium id.
        preset: ``auto``, a name, or ``none`` or None for no options.
        overrides: options that replace the preset's. If their ``strategy`` or ``policy`` differs from the
            preset's, the options tuned for the preset's are omitted. ``hidden`` implies an MLP instead of a
            linear or quadratic policy.
        report: function called with a line that names the options omitted because of a different strategy.

    Raises:
        InputError: there is no preset of that name.
    """
    overrides = overrides or {}
    name = _own(env, overrides) if preset == "auto" else preset
    if name in (None, "none"):
        return {}
    found = read(str(name)).options
    # ``env`` is an id that already implies the preset's arguments.
    if env == name != found.get("env", env):
        found = {option: value for option, value in found.items() if option != "env_kwargs"} | {"env": env}
    found = _with_policy(found, overrides)
    if overrides.get("strategy") in (None, found["strategy"]):
        return _with_population(found, overrides)
    left_out = [name for name in found if name in OF_STRATEGY and name not in overrides]
    if "strategy_options" in left_out:
        left_out.remove("strategy_options")
        left_out += found["strategy_options"]
    if report is not None and left_out:
        report(
            f"preset {name} was tuned for {found['strategy']}; with {overrides['strategy']}, its "
            f"{', '.join(left_out)} are not used; environment, policy, evaluation, target and limits are"
        )
    return {option: value for option, value in found.items() if option not in OF_STRATEGY}


def layer(
    overrides: Values, inherited: Values, preset: str | None, report: Callable[[str], None] | None = None
) -> Config:
    """Build a config from ``overrides``, then ``inherited``, then a preset; earlier ones take precedence.

    Arguments of the environment override the preset's one by one. A preset named in ``overrides`` takes
    precedence over ``preset``. The config records the name of the preset in use.

    Args:
        overrides: options of the user.
        inherited: options of the run that supplies the initial policy.
        preset: ``auto``, a name, ``none`` or None.
        report: see :func:`options`.

    Raises:
        InputError: the options exclude each other, or there is no such preset.
    """
    env, preset = overrides.get("env") or "", overrides.get("preset", preset)
    if preset == "auto":
        preset = _own(env, overrides, inherited)
    chosen = options(env, preset, inherited | overrides, report)
    if "env_kwargs" in overrides:
        overrides = {**overrides, "env_kwargs": chosen.get("env_kwargs", {}) | overrides["env_kwargs"]}
    return Config(**layered(chosen, inherited, overrides) | {"preset": None if preset == "none" else preset})


def _with_policy(found: Values, overrides: Values) -> Values:
    """Return a preset's options, without those of its policy if ``overrides`` selects a different one."""
    before: str = found.get("policy", "mlp")
    policy: str = overrides.get("policy", before)
    if "policy" not in overrides and overrides.get("hidden") and before in ("linear", "quadratic"):
        policy = "mlp"
    if policy == before:
        return found
    read = ARCHITECTURES[policy].options if policy in ARCHITECTURES else frozenset()
    left_out = {"policy", "init", "bias"} | ({"hidden", "activation"} - read)
    return {option: value for option, value in found.items() if option not in left_out}


def _with_population(found: Values, overrides: Values) -> Values:
    """Return a preset's options, without ``top_directions`` if the population has fewer directions."""
    own, population = found.get("strategy_options", {}), overrides.get("population")
    if not isinstance(population, int) or own.get("top_directions", 0) <= population // 2:
        return found
    return found | {"strategy_options": {name: own[name] for name in own if name != "top_directions"}}


def _own(env: str, overrides: Values, inherited: Values | None = None) -> str | None:
    """Return the name of the preset for ``env`` with the ``env_kwargs`` in ``overrides``, or None."""
    kwargs = overrides.get("env_kwargs", {})
    fitting = {env: 0} if env in names() else {}
    for name in names():
        # Settings of earlier systems apply by name only.
        if not name.startswith(env.rpartition("-v")[0] or env):
            continue
        made_for = parse_toml(_FOLDER / f"{name}.toml").get("config", {})
        needed = made_for.get("env_kwargs", {})
        if made_for.get("env") == env and needed and needed.items() <= kwargs.items():
            fitting[name] = len(needed)
    any_game = GAMES if env.startswith("ALE/") and not _other_looks(overrides, inherited or {}) else None
    return max(fitting, key=lambda name: fitting[name], default=any_game)


def _other_looks(overrides: Values, inherited: Values) -> set[str]:
    """Return the options that keep :data:`GAMES` from being used; a policy trained with it inherits none."""
    games = read(GAMES).options
    return _LOOKS & (overrides.keys() | {name for name in inherited if inherited[name] != games.get(name)})
