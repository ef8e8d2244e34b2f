"""The meaning of an environment's name: a registered id, a class of the user's, or a mistake."""

from __future__ import annotations

import importlib.util
import os
import re
from types import ModuleType

import gymnasium
from gymnasium import error
from gymnasium.envs.registration import EnvSpec

from escalade.envs.envpool.worlds import all_ids, find_world
from escalade.envs.factories import factory_spec
from escalade.envs.providers import register
from escalade.errors import InputError, nearest
from escalade.support.imports import import_named
from escalade.support.shared import without_warnings

_FILE = re.compile(r"(?:.*/)?([^/:]+)\.py(?::(.+))?")
"""A file of Python, and the name in it that may stand behind a colon."""


def find_spec(env_id: str) -> EnvSpec:
    """The registration of an environment, or what stands for one.

    Raises:
        InputError: there is none; the message says what may have been meant. Or it makes vector environments
            alone.
    """
    module, colon, name = env_id.rpartition(":")
    if module == "zoo":
        raise InputError(f"{env_id} is a policy, not an environment: give {name}, and `start_from` {env_id}")
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
            return factory_spec(name, factory)
    register(name)
    try:
        with without_warnings():  # "a newer version exists": the user chose this one
            found = gymnasium.spec(name)
    except error.Error:
        if (world := None if colon else find_world(name)) is not None:
            return world
        raise InputError(f"unknown environment {env_id!r}{_meant(name, place)}") from None
    if found.entry_point is None:
        raise InputError(
            f"environment {env_id} can only be made as a vector environment (gymnasium.make_vec), and these "
            "are not supported yet: register an `entry_point` that makes one environment"
        )
    return found


def _meant(name: str, place: ModuleType | None) -> str:
    """Words for what an unknown environment may mean; ``place`` is the module that was named with it."""
    if place is not None and place.__name__ == "__main__":
        return (
            ": a script defined it, so call escalade.evaluate, resume and render there, or put it into a "
            "module that commands can name"
        )
    known = {*gymnasium.registry, *all_ids()}
    if place is not None and isinstance(getattr(place, name, None), gymnasium.Env):
        return f": {name} was made already, and every worker makes its own: give its class"
    inside = [] if place is None else [one for one, thing in vars(place).items() if _could_be(one, thing)]
    hint = nearest(name, inside) or nearest(name, known) or nearest(name.rpartition("/")[2], known)
    if place is not None:
        return hint or f": module {place.__name__} has no {name}, and registers none"
    return hint or _as_module(name) or ": one of your own is MODULE:Class or MODULE:Id-v0"


def _could_be(name: str, thing: object) -> bool:
    return callable(thing) and not name.startswith("_")


def _as_module(name: str) -> str:
    """Words for the name of a module, or of something in it, that was given without a colon."""
    top, *parts = name.split(".")
    if top.startswith("_") or not all(part.isidentifier() for part in (top, *parts)):
        return ""  # __main__ among them, which importlib refuses to look for
    if importlib.util.find_spec(top) is None:
        return ""
    module, inside = (".".join((top, *parts[:-1])), parts[-1]) if parts else (top, "Class")
    return f": one of your own is written with a colon, as {module}:{inside}"
