"""The names of the arguments that a function or a class takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from escalade.errors import InputError, nearest


def keywords_of(factory: Callable[..., Any]) -> set[str] | None:
    """Names that ``factory`` takes; None when it takes any."""
    parameters = parameters_of(factory.func if isinstance(factory, partial) else factory)
    return None if any(part.kind is part.VAR_KEYWORD for part in parameters.values()) else {*parameters}


def check_call(
    factory: Callable[..., Any], given: Collection[str], always: Collection[str], what: str, mend: str
) -> None:
    """Refuse to call ``factory`` with one positional argument and the keywords ``given``.

    Args:
        factory: a class or a function, or a partial of one.
        given: names of keywords.
        always: those that every factory must take.
        what: the thing that it makes, in errors.
        mend: how a further argument is given, in errors.

    Raises:
        InputError: it does not take one of them, or needs another.
    """
    known = keywords_of(factory)
    for key in given:
        if known is not None and key not in known:
            other = f": make it accept {key}=" if key in always else nearest(key, known) or ": leave it out"
            raise InputError(f"{what} takes no {key}{other}")
    # Only the factory's own parameters, without its bases': a subclass may fix an argument its base needs.
    maker = factory.func if isinstance(factory, partial) else factory
    own = inspect.signature(
        next(_constructors(maker), maker) if isinstance(maker, type) else maker
    ).parameters
    for part in list(inspect.signature(factory, follow_wrapped=False).parameters.values())[1:]:
        needed = part.default is part.empty and part.kind in (part.POSITIONAL_OR_KEYWORD, part.KEYWORD_ONLY)
        if needed and part.name in own and part.name not in given:
            raise InputError(f"{what} needs {part.name}: {mend}")


def fixed_by(factory: object) -> dict[str, Any]:
    """The keywords that a ``functools.partial`` fixes; none of anything else."""
    return factory.keywords if isinstance(factory, partial) else {}


def parameters_of(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Its parameters by name, as :func:`signature_of` has them for classes of strategies."""
    return inspect.signature(factory).parameters


def signature_of(kind: type) -> inspect.Signature:
    """The signature of a class whose constructor hands ``**keywords`` on: those of its bases written out."""
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
    """The ``__init__`` of a class and of its bases, in the order in which they are called."""
    return (vars(base)["__init__"] for base in inspect.getmro(kind)[:-1] if "__init__" in vars(base))


def check_keywords(name: str, function: Callable[..., Any], given: Iterable[str]) -> None:
    """Check that ``function``, the constructor of ``name``, takes the keywords ``given``.

    Raises:
        InputError: it does not take one; the message names the nearest.
    """
    accepted = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()):
        return
    known = [own for own in accepted if own != "self"]
    for keyword in given:
        if keyword not in known:
            raise InputError(
                f"{name} takes no {keyword}{nearest(keyword, known)} (it takes {', '.join(known)})"
            )
