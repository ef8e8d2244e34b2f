"""One TOML file a preset: what to train an environment with, and the result that reached, once measured.

A preset is called like its file below ``tuned/``. One that is called like an environment is that one's own;
the others, such as ``openai/humanoid``, which are the settings of earlier systems, are asked for by name.
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
"""Options that were tuned for a preset's strategy. The rest is the problem, which all strategies are given
alike: the environment with its frames and reward, the policy, evaluation, target and budget."""
GAMES = "ALE/games"
"""The preset of all games that have none of their own."""
_LOOKS = {"policy", "env_kwargs", "wrappers", "grayscale", "crop", "resize", "frame_stack"}
"""Options of a policy and of its picture of a game: whoever gives one chooses all of them."""


@dataclass(frozen=True)
class Preset:
    """Options of :class:`escalade.config.options.Config`, and measured results."""

    name: str
    options: Values
    result: dict[str, Any] | None
    """None where nobody has measured it."""


def names() -> list[str]:
    """The names of the presets, sorted."""
    return sorted(
        str(path.relative_to(_FOLDER).with_suffix("").as_posix()) for path in _FOLDER.rglob("*.toml")
    )


def read(name: str) -> Preset:
    """The preset called ``name``.

    Raises:
        InputError: there is none.
    """
    if name not in names():
        raise InputError(
            f"there is no preset {name!r}{nearest(name, names())}: 'escalade presets' lists them"
        )
    content = parse_toml(_FOLDER / f"{name}.toml")
    return Preset(name, from_values(content["config"], name), content.get("result"))


def options(
    env: str, preset: str | None, given: Values | None = None, say: Callable[[str], None] | None = None
) -> Values:
    """Options for ``env``: of its own preset with ``auto``, of a named one, or none with None or ``none``.

    Its own preset is the one made for the environment with these ``env_kwargs``: of those made for ``env``
    with arguments that are all given, the one with the most.

    Args:
        env: a Gymnasium id.
        preset: ``auto``, a name, ``none`` or None.
        given: options that win over the preset's. Where their ``strategy`` or ``policy`` is another than the
            preset's, what was tuned for the preset's is left out; ``hidden`` asks for an MLP instead of a
            linear or quadratic policy.
        say: called with a line that names what is left out for another strategy.

    Raises:
        InputError: there is no preset of that name.
    """
    given = given or {}
    name = _own(env, given) if preset == "auto" else preset
    if name in (None, "none"):
        return {}
    found = read(str(name)).options
    # Another name for the same environment, which needs no arguments.
    if env == name != found.get("env", env):
        found = {option: value for option, value in found.items() if option != "env_kwargs"} | {"env": env}
    found = _with_policy(found, given)
    if given.get("strategy") in (None, found["strategy"]):
        return _with_population(found, given)
    left_out = [name for name in found if name in OF_STRATEGY and name not in given]
    if "strategy_options" in left_out:
        left_out.remove("strategy_options")
        left_out += found["strategy_options"]
    if say is not None and left_out:
        say(
            f"preset {name} was tuned for {found['strategy']}: with {given['strategy']} its "
            f"{', '.join(left_out)} are left out; environment, policy, evaluation, target and limits stay"
        )
    return {option: value for option, value in found.items() if option not in OF_STRATEGY}


def layer(
    given: Values, begun: Values, preset: str | None, say: Callable[[str], None] | None = None
) -> Config:
    """The config of what is ``given``, over what a policy to begin with brings, over a preset.

    Arguments of the environment are put over the preset's one by one, as it was tuned with those. A preset
    named in ``given`` takes precedence over ``preset``; the config holds the name of the one in use.

    Raises:
        InputError: they do not go together, or there is no such preset; see :func:`options`.
    """
    env, preset = given.get("env") or "", given.get("preset", preset)
    if preset == "auto":
        preset = _own(env, begun | given)
    chosen = options(env, preset, begun | given, say)
    if "env_kwargs" in given:
        given = {**given, "env_kwargs": chosen.get("env_kwargs", {}) | given["env_kwargs"]}
    return Config(**layered(chosen, begun, given) | {"preset": None if preset == "none" else preset})


def _with_policy(found: Values, given: Values) -> Values:
    """A preset's options, without those of its policy where ``given`` asks for another."""
    before: str = found.get("policy", "mlp")
    policy: str = given.get("policy", before)
    if "policy" not in given and given.get("hidden") and before in ("linear", "quadratic"):
        policy = "mlp"
    if policy == before:
        return found
    read = ARCHITECTURES[policy].options if policy in ARCHITECTURES else frozenset()
    left_out = {"policy", "init", "bias"} | ({"hidden", "activation"} - read)
    return {option: value for option, value in found.items() if option not in left_out}


def _with_population(found: Values, given: Values) -> Values:
    """A preset's options, without ``top_directions`` if the given population has fewer: then all count."""
    own, population = found.get("strategy_options", {}), given.get("population")
    if not isinstance(population, int) or own.get("top_directions", 0) <= population // 2:
        return found
    return found | {"strategy_options": {name: own[name] for name in own if name != "top_directions"}}


def _own(env: str, given: Values) -> str | None:
    """The name of the preset made for ``env`` with the ``env_kwargs`` of ``given``, if there is one."""
    kwargs = given.get("env_kwargs", {})
    fitting = {env: 0} if env in names() else {}
    for name in names():
        if not name.startswith(
            env.rpartition("-v")[0] or env
        ):  # settings of earlier systems are asked for by name
            continue
        made_for = parse_toml(_FOLDER / f"{name}.toml").get("config", {})
        needed = made_for.get("env_kwargs", {})
        if made_for.get("env") == env and needed and needed.items() <= kwargs.items():
            fitting[name] = len(needed)
    any_game = GAMES if env.startswith("ALE/") and not _LOOKS & given.keys() else None
    return max(fitting, key=lambda name: fitting[name], default=any_game)
