"""Finds the registration, class or function that an environment's name refers to."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium import error
from gymnasium.envs.registration import EnvSpec

from escalade.envs.batched import PROVIDERS, BatchedSpec, find_provided, is_world, vector_only
from escalade.envs.envpool.worlds import all_ids, find_world
from escalade.envs.providers import register
from escalade.errors import InputError, nearest
from escalade.support.imports import import_named
from escalade.support.shared import without_warnings

_FILE = re.compile(r"(?:.*/)?([^/:]+)\.py(?::(.+))?")
"""A Python file, optionally followed by a colon and a name."""


class FactorySpec(EnvSpec):
    """Registration of a class or function, which is its ``entry_point``."""

    @property
    def factory(self) -> Any:
        """Class or function."""
        return self.entry_point


def find_spec(env_id: str) -> EnvSpec:
    """Return the registration of an environment, or a substitute.

    Raises:
        InputError: the environment is unknown; the message suggests similar names.
    """
    module, colon, name = env_id.rpartition(":")
    if module == "zoo":
        raise InputError(f"{env_id} is a policy, not an environment: use {name} with `start_from` {env_id}")
    if module in PROVIDERS:
        return find_provided(module, name)
    if file := _FILE.fullmatch(env_id):
        folder = os.path.abspath(os.path.dirname(env_id.partition(":")[0]))
        where = "" if folder == os.getcwd() else f" and run in {os.path.dirname(env_id.partition(':')[0])}"
        raise InputError(f"environment {env_id} is a file: write {file[1]}:{file[2] or 'Class'}{where}")
    if env_id.endswith(".toml"):
        raise InputError(f"environment {env_id} is a file: pass a file of options as `config`")
    place = None
    if colon:
        place = import_named(module, f"environment {env_id}")
        if name.isidentifier() and callable(factory := getattr(place, name, None)):
            return (BatchedSpec if is_world(factory) else FactorySpec)(id=name, entry_point=factory)
    register(name)
    try:
        with without_warnings():  # "a newer version exists", but the user chose this one
            found = gymnasium.spec(name)
    except error.Error:
        if (world := None if colon else find_world(name)) is not None:
            return world
        raise InputError(f"unknown environment {env_id!r}{_suggestion(name, place)}") from None
    return vector_only(name) if found.entry_point is None else found


def described(made: Any) -> str:
    """Describe an object or class that is not a ``gymnasium.Env``, and how to fix this."""
    kind = made if isinstance(made, type) else type(made)
    bases = {(base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__}
    packages = {package for package, _ in bases}
    if ("gymnasium", "VectorEnv") in bases:
        what = "a VectorEnv: make it take `num_envs` and `device`, or return a single environment"
    elif ("gymnasium", "FuncEnv") in bases:
        what = (
            "a FuncEnv, but functional environments are not supported: wrap it in "
            "gymnasium.envs.functional_jax_env.FunctionalJaxEnv"
        )
    elif "pettingzoo" in packages or hasattr(made, "possible_agents"):
        what = (
            "an environment of several agents (PettingZoo), but a policy plays one: write a gymnasium.Env "
            "that plays the others"
        )
    elif "gym" in packages:
        what = "of the old gym: wrap it in shimmy.GymV26CompatibilityV0 or shimmy.GymV21CompatibilityV0"
    else:
        what = "not a gymnasium.Env: let its class inherit from gymnasium.Env"
    return f"returned a {kind.__name__}, {what}"


def _suggestion(name: str, place: ModuleType | None) -> str:
    """Return advice on an unknown environment; ``place`` is the module in its name."""
    if place is not None and place.__name__ == "__main__":
        return (
            ": it was defined in a script; call escalade.evaluate, resume and render there, or move it to a "
            "module that commands can import"
        )
    known = {*gymnasium.registry, *all_ids()}
    inside = [one for one, thing in vars(place).items() if callable(thing)] if place else []
    hint = nearest(name, inside) or nearest(name, known) or nearest(name.rpartition("/")[2], known)
    if place is not None:
        return hint or f": module {place.__name__} neither defines nor registers {name}"
    return hint or ": write your own environment as MODULE:Class or MODULE:Id-v0"


def is_gymnasiums_own(spec: EnvSpec) -> bool:
    """Return True if the spec makes the environment, with arguments, that Gymnasium registers under its id.

    False for any other id, and if Gymnasium's source cannot be read.
    """
    made = spec.entry_point, spec.kwargs
    return not spec.additional_wrappers and _registered().get(spec.id) == made


def own_id(spec: EnvSpec, kwargs: dict[str, Any]) -> str | None:
    """Return the id under which Gymnasium registers ``spec`` with these arguments, or None.

    For example, ``LunarLander-v3`` with ``continuous=True`` is ``LunarLanderContinuous-v3``.
    """
    if not is_gymnasiums_own(spec):
        return None
    own, wanted = _registered(), (spec.entry_point, spec.kwargs | kwargs)
    return next((name for name in (spec.id, *own) if own[name] == wanted), None)


@cache
def _registered() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return entry points and arguments of Gymnasium's registrations by id, parsed from its source.

    The registry is not reliable, because a user's registration replaces Gymnasium's of the same id. Calls
    whose arguments are not literals are skipped.
    """
    package = importlib.util.find_spec("gymnasium.envs")
    tree = ast.parse(Path(str(package and package.origin)).read_text(encoding="utf-8"))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "register":
            try:
                named = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
            except ValueError:
                continue
            if not named.get("additional_wrappers"):
                found[named["id"]] = named.get("entry_point"), named.get("kwargs", {})
    return found
