"""Classes and functions passed as options: environments, wrappers, strategies and behaviors."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from escalade.errors import InputError
from escalade.support.imports import name_of


def code_to_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Replace every class and function in ``options`` by its name, which a run can record.

    An environment may be a class or a function that makes one, or a ``functools.partial`` of either, whose
    arguments become ``env_kwargs``. The same holds for wrappers. A strategy may be a class, a behavior a
    function.

    Raises:
        InputError: one has no name by which a resumed run could import it, or belongs to a different option.
    """
    found = dict(options)
    env, strategy, wrappers = (found.get(name) for name in ("env", "strategy", "wrappers"))
    if callable(behavior := found.get("behavior")):
        found["behavior"] = name_of(behavior, "`behavior`")
    if hasattr(env, "step") and not isinstance(env, type):
        raise InputError(
            f"`env` is an instance of {type(env).__name__}, but every worker makes its own; "
            "pass the class, or a function that makes an instance"
        )
    if hasattr(strategy, "ask") and not isinstance(strategy, type):
        raise InputError(f"`strategy` is an instance of {type(strategy).__name__}; pass the class")
    if callable(found.get("policy")):
        raise InputError("`policy` takes a name; pass a module of your own as `network`")
    if callable(env):
        factory, keywords = _parts(env, "`env`")
        found["env"] = name_of(factory, "`env`")
        if keywords:
            found["env_kwargs"] = keywords | dict(found.get("env_kwargs") or {})
    if isinstance(wrappers, list | tuple):
        found["wrappers"] = [_wrapper(each) if callable(each) else each for each in wrappers]
    if callable(strategy):
        factory, keywords = _parts(strategy, "`strategy`")
        found["strategy"] = name_of(factory, "`strategy`")
        if keywords:
            found["strategy_options"] = keywords | dict(found.get("strategy_options") or {})
    return found


def _wrapper(wrapper: Any) -> str:
    """Return the wrapper as text for ``--wrap``."""
    factory, keywords = _parts(wrapper, "`wrappers`")
    arguments = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
    return name_of(factory, "`wrappers`") + (f"({arguments})" if arguments else "")


def _parts(thing: Any, what: str) -> tuple[Any, dict[str, Any]]:
    """Split a callable or a partial of one into the callable and the fixed keywords."""
    if not isinstance(thing, functools.partial):
        return thing, {}
    if thing.args:
        raise InputError(f"{what}: pass the arguments of functools.partial by keyword")
    return thing.func, dict(thing.keywords)
