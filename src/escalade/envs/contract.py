"""Checks of an environment of the user's before it is stepped, in words for whoever wrote it."""

from __future__ import annotations

import inspect
from typing import Any
from weakref import WeakValueDictionary

import gymnasium
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, load_env_creator

from escalade.errors import InputError

Env = gymnasium.Env[Any, Any]

_MADE: WeakValueDictionary[int, Env] = WeakValueDictionary()
"""The innermost environments of this process, by ``id``: their classes may define ``==``."""


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
        inspect.signature(within_wrappers(env).reset).bind(seed=0)
    except ValueError:  # it is not written in Python, and does not say what it takes
        return
    except TypeError as problem:
        raise InputError(
            f"environment {env_id}: its reset must take a seed, as reset(self, *, seed=None, options=None) "
            f"of gymnasium.Env ({problem})"
        ) from problem


def check_new(env: Env, env_id: str) -> None:
    """See that the environment is not one that was made before, perhaps in wrappers of its own.

    Episodes run side by side, each in an environment of its own.

    Raises:
        InputError: it was made before.
    """
    inner = innermost(env)
    if _MADE.get(id(inner)) is inner:
        raise InputError(
            f"environment {env_id}: the same {type(inner).__name__} object was returned twice, and episodes "
            "run side by side: build a new object in every call"
        )
    _MADE[id(inner)] = inner


def within_wrappers(env: Env) -> Env:
    """Return the environment within Gymnasium's wrappers. Its ``unwrapped`` may be of another library."""
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
    return env


def innermost(env: Env) -> Env:
    """Return the last environment that wrappers of any class hold as ``env`` or ``_env``."""
    while isinstance(inner := vars(env).get("env", vars(env).get("_env")), gymnasium.Env):
        env = inner
    return env


def arguments_fit(spec: EnvSpec, kwargs: dict[str, Any]) -> bool:
    """Tell whether the class or function that makes the environment can be called with these arguments."""
    entry = spec.entry_point
    assert entry is not None  # `find_spec` has refused it
    try:
        creator = load_env_creator(entry) if isinstance(entry, str) else entry
        inspect.signature(creator).bind(**spec.kwargs | kwargs)
    except TypeError:
        return False
    except ValueError:  # it has no signature
        return True
    return True


def describe_foreign(made: Any) -> str:
    """Describe an object, or a class, that should be a ``gymnasium.Env``, and how to fix that."""
    kind = made if isinstance(made, type) else type(made)
    bases = {(base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__}
    packages = {package for package, _ in bases}
    if ("gymnasium", "VectorEnv") in bases:
        what = "a VectorEnv, and vector environments are not supported yet: make one environment"
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
