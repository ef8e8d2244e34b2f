"""The options that name code to import. A checkpoint may not: it may be a stranger's file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from escalade.config.files import read_config
from escalade.errors import InputError
from escalade.rollout.behaviour import Behaviour
from escalade.storage.run_folder import RunFolder

_PLAYED = ("env", "strategy", "policy", "wrappers")
"""Options that a policy is played with."""
_NAMING = (*_PLAYED, "behaviour", "recorder")

Guard = Callable[[Mapping[str, Any]], None]
"""Checks the options that a file records, and raises :class:`InputError` for code that it may not name."""


def code_named(values: Mapping[str, Any]) -> list[str]:
    """The options that name code to import, of those that a policy is played with."""
    return list(dict.fromkeys(name for name, _ in _code(values) if name in _PLAYED))


def of_a_script(values: Mapping[str, Any]) -> list[str]:
    """The code of a script that a config names, such as ``__main__:MyEnv``: no other process finds it."""
    return [text for name, text in _code(values) if text.startswith("__main__:") and name != "recorder"]


def known_to(folder: RunFolder, changes: Mapping[str, Any] | None = None) -> Guard:
    """A guard for checkpoints of a run: they name the code that its config.toml names, or ``changes``."""

    def check(values: Mapping[str, Any]) -> None:
        if named := _code(values):
            known = _code(vars(read_config(folder)) | dict(changes or {}))
            if unknown := _unknown(named, known):
                mend = f"write it into {folder.config} if you know it"
                raise InputError(f"a checkpoint names {unknown}, which config.toml does not: {mend}")

    return check


def _unknown(named: list[tuple[str, str]], known: list[tuple[str, str]]) -> str:
    """The first of ``named`` that is not ``known``, in words; empty if all are."""
    return next((f"`{name}` {text}" for name, text in named if (name, text) not in known), "")


def _code(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options and the code in them, ``package.module:Name``."""
    named = ((name, values.get(name) or ()) for name in _NAMING)
    each = ((name, text) for name, value in named for text in ((value,) if isinstance(value, str) else value))
    return [
        (name, text)
        for name, text in each
        if ":" in text and (name != "behaviour" or Behaviour(text).kind == "function")
    ]
