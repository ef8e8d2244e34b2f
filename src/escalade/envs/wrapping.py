"""Parses and applies the user's wrappers, and checks rewards, ends and infos of steps."""

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

if TYPE_CHECKING:  # options are checked before Gymnasium is imported
    import gymnasium

FORM = "package.module:Wrapper, or package.module:Wrapper(argument=value)"
_WEIGHED = "mo_gymnasium.wrappers:LinearReward(weight=np.array([0.5, 0.5]))"


@dataclass(frozen=True)
class Wrapper:
    """A parsed wrapper: the name of a class and its literal arguments."""

    text: str
    home: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    factory: Callable[..., Any] | None = None
    """The imported class. It is sent to workers by value, as they cannot import it from a script."""

    def found(self) -> Wrapper:
        """Return the wrapper with its class imported.

        Raises:
            InputError: the class does not exist.
        """
        return replace(self, factory=imported(self.home, f"`wrappers` {self.text}"))

    def __call__(self, env: gymnasium.Env[Any, Any]) -> Any:
        """Wrap the environment."""
        arguments, keywords = copy.deepcopy((self.arguments, self.keywords))  # may be stored and changed
        assert self.factory is not None  # find() has imported it
        return self.factory(env, *arguments, **keywords)


def parse(text: str) -> Wrapper:
    """Parse ``package.module:Wrapper(1, key="value")`` without evaluating or importing anything.

    Values are Python literals (numbers, strings, True, False, None, and lists, tuples and dicts of these) or
    arrays such as ``np.array([1.0, 2.0])`` and ``np.array([1, 2], dtype="float32")``.

    Raises:
        InputError: the text is not of this form, or a value is not a literal.
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
            f"`wrappers` {text}: arguments must be literals, such as 3, 'x' or np.array([1, 2])"
        ) from None
    return Wrapper(text, f"{module.strip()}:{values.func.id}", arguments, keywords)


def _value(node: ast.expr) -> Any:
    """Return the value of an argument: a literal or a NumPy array."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("np" | "numpy"), "array"), [numbers], words):
            keywords = {str(word.arg): ast.literal_eval(word.value) for word in words}
            if not keywords.keys() <= {"dtype"}:
                raise ValueError("np.array takes only a list and a dtype here")
            return np.array(ast.literal_eval(numbers), **keywords)
    return ast.literal_eval(node)


def find(texts: Sequence[str]) -> tuple[Wrapper, ...]:
    """Parse and import wrappers, innermost first.

    Raises:
        InputError: one has the wrong form or does not exist.
    """
    return tuple(parse(text).found() for text in texts)


def wrap(env: gymnasium.Env[Any, Any], wrappers: Sequence[Wrapper]) -> gymnasium.Env[Any, Any]:
    """Apply the wrappers to ``env`` in order.

    Raises:
        InputError: a wrapper does not accept the environment or its arguments, or is not a wrapper.
    """
    if not wrappers:
        return env
    from gymnasium import Env

    for wrapper in wrappers:
        with closed_on_error(env):
            try:
                made = wrapper(env)
            except (Exception, SystemExit) as problem:  # code of the wrapper may raise anything
                raise InputError(
                    f"`wrappers` {wrapper.text} cannot wrap the environment: {one_line(problem)}"
                ) from problem
            if not isinstance(made, Env):
                text = f"`wrappers` {wrapper.text} returned a {type(made).__name__}"
                raise InputError(f"{text}, not a gymnasium.Env: use a gymnasium.Wrapper")
        env = made
    return env


def info_number(info: dict[str, Any], key: str, option: str = "reward") -> float:
    """Return the entry ``key`` of a step's info as a number; ``option`` is named in errors.

    Raises:
        InputError: the entry is missing or not one number.
    """
    if key not in info:
        raise InputError(f"`{option}` {key}: a step's info has no such entry ({entries(info)})")
    try:
        return one_number(info[key])
    except InvalidValue:
        raise InputError(
            f"`{option}` {key}: this entry of a step's info must be a number, not {info[key]!r}"
        ) from None


def entries(info: Iterable[Any]) -> str:
    """Return a list of the entries of an info for messages."""
    names = ", ".join(map(str, info))
    return f"it has {names}" if names else "it is empty"


class InvalidValue(Exception):
    """``reset`` or ``step`` returned an invalid value."""


def one_number(value: Any) -> float:
    """Return a reward, or an entry of an info, as a float.

    NumPy and torch scalars and arrays of size 1 are accepted. Text is not, although ``float`` accepts it.

    Raises:
        InvalidValue: it is not one number.
    """
    try:
        number = _item(value)
        if not isinstance(number, str | bytes | bytearray):
            return float(number)
    except (TypeError, ValueError, RuntimeError):
        pass
    several = isinstance(value, list | tuple | dict) or getattr(value, "shape", ()) != ()
    agents = "or control a single agent of several in your own wrapper"
    fix = f": weight them, as in `wrappers` {_WEIGHED}, {agents}" if several else ""
    raise InvalidValue(f"a reward must be one number, not {short(value)}{fix}")


def one_bool(value: Any, name: str) -> bool:
    """Return ``terminated`` or ``truncated`` as a bool; ``name`` is which of them.

    Other types are not accepted, because any text is true, even ``"no"``.

    Raises:
        InvalidValue: it is neither a bool nor an array with one bool.
    """
    try:
        end = _item(value)
    except (TypeError, ValueError, RuntimeError):
        end = None
    if isinstance(end, bool):
        return end
    raise InvalidValue(f"`{name}` must be True or False, not {short(value)}")


def _item(value: Any) -> Any:
    """Return the Python value of a NumPy or torch scalar or an array of size 1."""
    return value.item() if hasattr(value, "item") else value
