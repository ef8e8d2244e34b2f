"""The keyword arguments of functions and classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from escalade.errors import InputError, nearest


def keywords_of(factory: Callable[..., Any]) -> set[str] | None:
    """Return the names of the arguments of ``factory``, or None if it takes any keyword."""
    parameters = parameters_of(factory.func if isinstance(factory, partial) else factory)
    return None if any(part.kind is part.VAR_KEYWORD for part in parameters.values()) else {*parameters}


def check_call(
    factory: Callable[..., Any], names: Collection[str], always: Collection[str], what: str, fix: str
) -> None:
    """Check that ``factory`` can be called with one positional argument and the keywords ``names``.

    Args:
        factory: a class or a function, or a partial of one.
        names: names of keywords.
        always: those keywords that every factory must accept.
        what: name of the object that the factory makes, for errors.
        fix: how to pass a missing argument, for errors.

    Raises:
        InputError: the factory does not accept one of the keywords, or needs a further argument.
    """
    known = keywords_of(factory)
    for key in names:
        if known is not None and key not in known:
            other = f"; make it accept {key}=" if key in always else nearest(key, known) or "; remove it"
            raise InputError(f"{what} takes no {key}{other}")
    # Only the factory's own parameters, as a subclass may fix an argument that its base needs.
    maker = factory.func if isinstance(factory, partial) else factory
    own = inspect.signature(
        next(_constructors(maker), maker) if isinstance(maker, type) else maker
    ).parameters
    for part in list(inspect.signature(factory, follow_wrapped=False).parameters.values())[1:]:
        needed = part.default is part.empty and part.kind in (part.POSITIONAL_OR_KEYWORD, part.KEYWORD_ONLY)
        if needed and part.name in own and part.name not in names:
            raise InputError(f"{what} needs {part.name}; {fix}")


def fixed_by(factory: object) -> dict[str, Any]:
    """Return the keywords that a ``functools.partial`` fixes; empty for other callables."""
    return factory.keywords if isinstance(factory, partial) else {}


def parameters_of(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters by name; classes of strategies report those of :func:`signature_of`."""
    return inspect.signature(factory).parameters


def signature_of(kind: type) -> inspect.Signature:
    """Return the signature of a class, with ``**keywords`` replaced by the parameters of its bases."""
    found: dict[str, inspect.Parameter] = {}
    for maker in _constructors(kind):
        parameters = inspect.signature(maker).parameters
        found |= {name: part for name, part in parameters.items() if name not in found}
        if all(part.kind is not part.VAR_KEYWORD for part in parameters.values()):
            break
    parts = sorted(list(found.values())[1:], key=lambda part: part.kind)
    named = [part for part in parts if part.kind not in (part.VAR_POSITIONAL, part.VAR_KEYWORD)]
    return inspect.Signature(named, __validate_parameters__=False)


def _constructors(kind: type) -> Iterator[Callable[..., Any]]:
    """Return the ``__init__`` methods of a class and its bases, in the order in which they are called."""
    return (vars(base)["__init__"] for base in inspect.getmro(kind)[:-1] if "__init__" in vars(base))


def check_keywords(name: str, function: Callable[..., Any], names: Iterable[str]) -> None:
    """Check that ``function``, the constructor of ``name``, accepts the keywords ``names``.

    Raises:
        InputError: a keyword is not accepted; the message names the nearest one.
    """
    accepted = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()):
        return
    known = [own for own in accepted if own != "self"]
    for keyword in names:
        if keyword not in known:
            raise InputError(
                f"{name} takes no {keyword}{nearest(keyword, known)} (it takes {', '.join(known)})"
            )
