"""Checks of an environment of the user's before it is stepped, in words for whoever wrote it."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from escalade.errors import InputError, text_of

Env = gymnasium.Env[Any, Any]


def check_spaces(env: Env, env_id: str) -> None:
    """See that the environment says what it shows and what it takes.

    Raises:
        InputError: it does not.
    """
    for name in ("observation_space", "action_space"):
        try:
            found = getattr(env, name)
        except AttributeError as problem:
            raise InputError(f"environment {env_id} lacks a space: {problem}") from problem
        if not isinstance(found, spaces.Space):
            raise InputError(
                f"environment {env_id}: its {name} must be one of gymnasium.spaces, not {found!r}"
            )


def check_takes_seed(env: Env, env_id: str) -> None:
    """See that the innermost environment can be given a seed.

    Raises:
        InputError: its ``reset`` takes none.
    """
    try:
        inspect.signature(env.unwrapped.reset).bind(seed=0)
    except ValueError:  # it is not written in Python, and does not say what it takes
        return
    except TypeError as problem:
        raise InputError(
            f"environment {env_id}: its reset must take a seed, as reset(self, *, seed=None, options=None) "
            f"of gymnasium.Env ({problem})"
        ) from problem


def lacks_arguments(spec: EnvSpec, problem: TypeError) -> bool:
    """Tell whether what makes the environment, a class or a function, was called with too few arguments."""
    entry = spec.entry_point
    name = entry.rpartition(":")[2] if isinstance(entry, str) else getattr(entry, "__qualname__", "")
    return text_of(problem).startswith((f"{name}() missing ", f"{name}.__init__() missing "))
