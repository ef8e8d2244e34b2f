"""Gymnasium's own registrations by id, whatever has been registered over them since."""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from gymnasium.envs.registration import EnvSpec


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
