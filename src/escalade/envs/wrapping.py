"""Wrappers that the user names, and what is read of a step: its reward, its ends and its info."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from escalade.envs.process import closed_on_error
from escalade.envs.spaces import short
from escalade.errors import InputError, one_line
from escalade.support.imports import imported

if TYPE_CHECKING:  # the options are checked before Gymnasium is wanted
    import gymnasium

FORM = "package.module:Wrapper, or package.module:Wrapper(argument=value)"
_WEIGHED = "mo_gymnasium.wrappers:LinearReward(weight=np.array([0.5, 0.5]))"


@dataclass(frozen=True)
class Wrapper:
    """A wrapper as it was written: a class by name, and the literal values it is called with."""

    text: str
    home: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    factory: Callable[..., Any] | None = None
    """The class, once it was imported. Workers get it by value: of a script, they could not import it."""

    def found(self) -> Wrapper:
        """The wrapper with its class.

        Raises:
            InputError: it is not there.
        """
        return replace(self, factory=imported(self.home, f"`wrappers` {self.text}"))

    def __call__(self, env: gymnasium.Env[Any, Any]) -> Any:
        """Return what the class makes of the environment."""
        arguments, keywords = copy.deepcopy((self.arguments, self.keywords))  # which it may keep and change
        assert self.factory is not None  # find() has imported it
        return self.factory(env, *arguments, **keywords)


def parse(text: str) -> Wrapper:
    """Read ``package.module:Wrapper(1, key="value")``; nothing is evaluated or imported.

    Values are Python literals: numbers, strings, True, False, None, and lists, tuples and dicts of them; or
    arrays, as ``np.array([1.0, 2.0])`` or ``np.array([1, 2], dtype="float32")``.

    Raises:
        InputError: the text is not of this form, or a value is no literal.
    """
    module, _, call = text.partition(":")
    named = all(part.isidentifier() for part in module.strip().split("."))
    try:
        tree = ast.parse(call.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        tree = ast.Constant(None)
    values = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
    if not named or not isinstance(values.func, ast.Name):
        raise InputError(f"`wrappers` {text} must be written as {FORM}")
    try:
        if any(word.arg is None for word in values.keywords):  # of **
            raise ValueError
        arguments = tuple(_value(value) for value in values.args)
        keywords = {str(word.arg): _value(word.value) for word in values.keywords}
    except (ValueError, TypeError):
        raise InputError(
            f"`wrappers` {text}: its arguments must be literal values, such as 3, 'x' or np.array([1, 2])"
        ) from None
    return Wrapper(text, f"{module.strip()}:{values.func.id}", arguments, keywords)


def _value(node: ast.expr) -> Any:
    """Return the value of an argument: a literal, or a NumPy array of one."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("np" | "numpy"), "array"), [numbers], words):
            keywords = {str(word.arg): ast.literal_eval(word.value) for word in words}
            if not keywords.keys() <= {"dtype"}:
                raise ValueError("np.array takes a list and a dtype here")
            return np.array(ast.literal_eval(numbers), **keywords)
    return ast.literal_eval(node)


def find(texts: Sequence[str]) -> tuple[Wrapper, ...]:
    """Import the wrappers that ``texts`` name, in their order: the first is nearest to the environment.

    Raises:
        InputError: one is not written as it must be, or is not there.
    """
    return tuple(parse(text).found() for text in texts)


def wrap(env: gymnasium.Env[Any, Any], wrappers: Sequence[Wrapper]) -> gymnasium.Env[Any, Any]:
    """``env`` in all the wrappers.

    Raises:
        InputError: one does not take the environment or its arguments, or makes something else of it.
    """
    if not wrappers:
        return env
    from gymnasium import Env

    for wrapper in wrappers:
        with closed_on_error(env):
            try:
                made = wrapper(env)
            except (Exception, SystemExit) as problem:  # whatever the wrapper's own code raises
                raise InputError(
                    f"`wrappers` {wrapper.text} cannot wrap the environment: {one_line(problem)}"
                ) from problem
            if not isinstance(made, Env):
                made_one = f"`wrappers` {wrapper.text} made a {type(made).__name__}"
                raise InputError(f"{made_one}, not a gymnasium.Env: name a Wrapper")
        env = made
    return env


def info_number(info: dict[str, Any], key: str, option: str = "reward") -> float:
    """The number called ``key`` in a step's info; ``option`` is who asked for it.

    Raises:
        InputError: there is none, or it is not one number.
    """
    if key not in info:
        raise InputError(f"`{option}` {key}: a step's info has no such entry ({entries(info)})")
    try:
        return one_number(info[key])
    except Misfit:
        raise InputError(
            f"`{option}` {key}: a step's info holds no number there, but {info[key]!r}"
        ) from None


def entries(info: Iterable[Any]) -> str:
    """Say what an info has."""
    names = ", ".join(map(str, info))
    return f"it has {names}" if names else "it is empty"


class Misfit(Exception):
    """A value that ``reset`` or ``step`` returned is not of its kind; the message says how."""


def one_number(value: Any) -> float:
    """Return a reward, or an entry of an info, as a float.

    Anything that holds one number will do: a NumPy or torch scalar, or an array of size 1. Text will not,
    though Python's ``float`` reads it.

    Raises:
        Misfit: it is not one number.
    """
    try:
        number = _item(value)
        if not isinstance(number, str | bytes | bytearray):
            return float(number)
    except (TypeError, ValueError, RuntimeError):
        pass
    several = isinstance(value, list | tuple | dict) or getattr(value, "shape", ()) != ()
    agents = "or with several agents, play a single one in a wrapper of your own"
    fix = f": weigh them, as in `wrappers` {_WEIGHED}, {agents}" if several else ""
    raise Misfit(f"a reward must be one number, not {short(value)}{fix}")


def one_bool(value: Any, name: str) -> bool:
    """Return ``terminated`` or ``truncated``, whichever is called ``name``, as a bool.

    Other values are refused, for any text is true, ``"no"`` too.

    Raises:
        Misfit: it is neither a bool nor an array that holds one.
    """
    try:
        end = _item(value)
    except (TypeError, ValueError, RuntimeError):
        end = None
    if isinstance(end, bool):
        return end
    raise Misfit(f"`{name}` must be True or False, not {short(value)}")


def _item(value: Any) -> Any:
    """Return the Python value that a NumPy or torch scalar, or an array of size 1, holds."""
    return value.item() if hasattr(value, "item") else value
