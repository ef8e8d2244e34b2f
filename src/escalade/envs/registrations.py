"""Gymnasium's own registrations by id, whatever has been registered over them since."""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from gymnasium.envs.registration import EnvSpec

_COMPARED = ("entry_point", "kwargs", "additional_wrappers")
"""The fields that decide how an episode goes, beside the step limit, which every backend is given."""


def is_gymnasiums_own(spec: EnvSpec) -> bool:
    """Return whether the spec makes the environment that Gymnasium registers under its id, arguments too.

    False for any other id, and where Gymnasium's source cannot be read.
    """
    given = _registered().get(spec.id)
    if given is None:
        return False
    own = EnvSpec(spec.id, **given)
    return all(getattr(own, name) == getattr(spec, name) for name in _COMPARED)


def own_id(spec: EnvSpec, kwargs: dict[str, Any]) -> str | None:
    """The id under which Gymnasium itself registers what ``spec`` makes with these arguments, if it does.

    ``LunarLander-v3`` with ``continuous=True`` is its ``LunarLanderContinuous-v3``.
    """
    if not is_gymnasiums_own(spec):
        return None
    wanted = replace(spec, kwargs=spec.kwargs | kwargs)
    own = (spec.id, *_registered())
    return next((name for name in own if is_gymnasiums_own(replace(wanted, id=name))), None)


@cache
def _registered() -> dict[str, dict[str, Any]]:
    """Arguments of Gymnasium's ``register`` calls, by id, read from its source without running it.

    The registry cannot tell: a user's registration replaces Gymnasium's under the same id. A call
    whose arguments are not plain values is left out.
    """
    package = importlib.util.find_spec("gymnasium.envs")
    try:
        assert package is not None
        tree = ast.parse(Path(str(package.origin)).read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return {}
    found = {}
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    for call in calls:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "register":
            try:
                given = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
                found[given.pop("id")] = {name: given[name] for name in _COMPARED if name in given}
            except (KeyError, ValueError):
                continue
    return found
