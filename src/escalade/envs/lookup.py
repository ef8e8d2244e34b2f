"""The meaning of an environment's name: a registration, a class of the user's, or a mistake."""

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
"""A file of Python, and the name in it that may stand behind a colon."""


class FactorySpec(EnvSpec):
    """A stand-in for a registration: its ``entry_point`` is the class or function itself."""

    @property
    def factory(self) -> Any:
        """The class or function."""
        return self.entry_point


def find_spec(env_id: str) -> EnvSpec:
    """The registration of an environment, or what stands for one.

    Raises:
        InputError: there is none; the message says what may have been meant.
    """
    module, colon, name = env_id.rpartition(":")
    if module == "zoo":
        raise InputError(f"{env_id} is a policy, not an environment: give {name}, and `start_from` {env_id}")
    if module in PROVIDERS:
        return find_provided(module, name)
    if file := _FILE.fullmatch(env_id):
        folder = os.path.abspath(os.path.dirname(env_id.partition(":")[0]))
        where = "" if folder == os.getcwd() else ", in the folder that holds it"
        raise InputError(f"environment {env_id} names a file: write {file[1]}:{file[2] or 'Class'}{where}")
    if env_id.endswith(".toml"):
        raise InputError(f"environment {env_id} names a file: one of options is given as `config`")
    place = None
    if colon:
        place = import_named(module, f"environment {env_id}")
        if name.isidentifier() and callable(factory := getattr(place, name, None)):
            return (BatchedSpec if is_world(factory) else FactorySpec)(id=name, entry_point=factory)
    register(name)
    try:
        with without_warnings():  # "a newer version exists": the user chose this one
            found = gymnasium.spec(name)
    except error.Error:
        if (world := None if colon else find_world(name)) is not None:
            return world
        raise InputError(f"unknown environment {env_id!r}{_meant(name, place)}") from None
    return vector_only(name) if found.entry_point is None else found


def described(made: Any) -> str:
    """Describe an object, or a class, that should be a ``gymnasium.Env``, and how to fix that."""
    kind = made if isinstance(made, type) else type(made)
    bases = {(base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__}
    packages = {package for package, _ in bases}
    if ("gymnasium", "VectorEnv") in bases:
        what = "a VectorEnv: let it take `num_envs` and `device`, or make one environment"
    elif ("gymnasium", "FuncEnv") in bases:
        what = (
            "a FuncEnv, and functional environments are not supported yet: wrap it in "
            "gymnasium.envs.functional_jax_env.FunctionalJaxEnv"
        )
    elif "pettingzoo" in packages or hasattr(made, "possible_agents"):
        what = (
            "an environment of several agents (PettingZoo), and a policy plays one: write a gymnasium.Env "
            "that plays the others"
        )
    elif "gym" in packages:
        what = "of the old gym: wrap it in shimmy.GymV26CompatibilityV0 or shimmy.GymV21CompatibilityV0"
    else:
        what = "not a gymnasium.Env: let its class inherit from gymnasium.Env"
    return f"made a {kind.__name__}, {what}"


def _meant(name: str, place: ModuleType | None) -> str:
    """Words for what an unknown environment may mean; ``place`` is the module that was named with it."""
    if place is not None and place.__name__ == "__main__":
        return (
            ": a script defined it, so call escalade.evaluate, resume and render there, or put it into a "
            "module that commands can name"
        )
    known = {*gymnasium.registry, *all_ids()}
    inside = [one for one, thing in vars(place).items() if callable(thing)] if place else []
    hint = nearest(name, inside) or nearest(name, known) or nearest(name.rpartition("/")[2], known)
    if place is not None:
        return hint or f": module {place.__name__} has no {name}, and registers none"
    return hint or ": one of your own is MODULE:Class or MODULE:Id-v0"


def is_gymnasiums_own(spec: EnvSpec) -> bool:
    """Return whether the spec makes the environment that Gymnasium registers under its id, arguments too.

    False for any other id, and if Gymnasium's source cannot be read.
    """
    made = spec.entry_point, spec.kwargs
    return not spec.additional_wrappers and _registered().get(spec.id) == made


def own_id(spec: EnvSpec, kwargs: dict[str, Any]) -> str | None:
    """The id under which Gymnasium itself registers what ``spec`` makes with these arguments, if it does.

    ``LunarLander-v3`` with ``continuous=True`` is its ``LunarLanderContinuous-v3``.
    """
    if not is_gymnasiums_own(spec):
        return None
    own, wanted = _registered(), (spec.entry_point, spec.kwargs | kwargs)
    return next((name for name in (spec.id, *own) if own[name] == wanted), None)


@cache
def _registered() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Entry points and arguments of Gymnasium's registrations by id, read from its source without running it.

    The registry cannot tell: a user's registration replaces Gymnasium's under the same id. A call
    whose arguments are not plain values is left out.
    """
    package = importlib.util.find_spec("gymnasium.envs")
    tree = ast.parse(Path(str(package and package.origin)).read_text(encoding="utf-8"))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "register":
            try:
                given = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
            except ValueError:
                continue
            if not given.get("additional_wrappers"):
                found[given["id"]] = given.get("entry_point"), given.get("kwargs", {})
    return found
