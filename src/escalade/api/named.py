"""Code that is given in Python where an option is text: environments, wrappers, strategies, behaviours."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from escalade.errors import InputError
from escalade.support.imports import name_of


def named(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with every class and function as its name, which a run can record.

    An environment may be a class or a function that makes one, or a ``functools.partial`` of either, whose
    arguments become ``env_kwargs``; a wrapper likewise; a strategy a class; a behaviour a function.

    Raises:
        InputError: one has no name by which a resumed run could find it, or is what another option takes.
    """
    found = dict(options)
    env, strategy, wrappers = (found.get(name) for name in ("env", "strategy", "wrappers"))
    if callable(behaviour := found.get("behaviour")):
        found["behaviour"] = name_of(behaviour, "`behaviour`")
    if hasattr(env, "step") and not isinstance(env, type):
        raise InputError(
            f"`env` is a {type(env).__name__} that was made already, and every worker makes its own: "
            "give its class, or a function that makes one"
        )
    if hasattr(strategy, "ask") and not isinstance(strategy, type):
        raise InputError(f"`strategy` is a {type(strategy).__name__} that was made already: give its class")
    if callable(found.get("policy")):
        raise InputError("`policy` takes a name: give a module of yours as `network`")
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
    """The text that ``--wrap`` takes for it."""
    factory, keywords = _parts(wrapper, "`wrappers`")
    given = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
    return name_of(factory, "`wrappers`") + (f"({given})" if given else "")


def _parts(thing: Any, what: str) -> tuple[Any, dict[str, Any]]:
    """A callable, and the arguments that a partial of it fixes."""
    if not isinstance(thing, functools.partial):
        return thing, {}
    if thing.args:
        raise InputError(f"{what}: give the arguments of functools.partial by their names")
    return thing.func, dict(thing.keywords)
