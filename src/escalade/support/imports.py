"""Imports by name: lazy names of a package, the user's own code, and missing packages."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from escalade.errors import InputError, nearest, one_line, place_of


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__`` (PEP 562).

    ``__getattr__`` imports ``name`` from the module ``homes[name]``. ``__dir__`` lists the names in
    ``__all__``, imported or not, and the package's dunder names, but no helpers.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with random_kept():  # third-party packages may draw from it
            module = importlib.import_module(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    def names() -> list[str]:
        module = sys.modules[package]
        return sorted({*module.__all__, *(name for name in vars(module) if name.startswith("__"))})

    return find, names


@contextmanager
def random_kept() -> Iterator[None]:
    """Restore the state of Python's ``random`` afterwards, as some packages draw from it on import."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


def import_named(module: str, what: str) -> ModuleType:
    """Import ``module``.

    Args:
        module: name of the module.
        what: option and value that name the module, for errors.

    Raises:
        InputError: there is no such module, or its import fails; the message begins with ``what``.
    """
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - the module's own code may raise anything
        reason = str(problem) if isinstance(problem, ImportError) else one_line(problem)
        # The first three types name their place or need none, and a place within importlib is of no use.
        file = traceback.extract_tb(problem.__traceback__)[-1].filename
        if not isinstance(problem, ImportError | SyntaxError | SystemExit) and "importlib" not in file:
            reason += f", {place_of(problem)}"
        # Only if the package itself is missing, not one of its modules.
        missing = isinstance(problem, ModuleNotFoundError) and problem.name == module.partition(".")[0]
        fix = "; run this in the folder that holds it, or set PYTHONPATH to that folder" if missing else ""
        raise InputError(f"{what}: module {module} cannot be imported ({reason}){fix}") from None


def imported(home: str, what: str) -> Any:
    """Import the user's class or function ``package.module:Name``.

    Args:
        home: ``package.module:Name``.
        what: option and value that name it, for errors.

    Raises:
        InputError: the module cannot be imported, or has no callable of that name.
    """
    module_name, _, name = home.partition(":")
    module = import_named(module_name, what)
    found = getattr(module, name, None)
    if not callable(found):
        near = nearest(name, [known for known in vars(module) if not known.startswith("_")])
        raise InputError(f"{what}: module {module_name} has no {name}{near}")
    return found


def called(thing: object) -> str:
    """Return the name of a function or class without its module; a string is returned unchanged."""
    named = getattr(thing, "func", thing)  # unwraps a partial
    return named if isinstance(named, str) else getattr(named, "__name__", type(named).__name__)


def name_of(thing: Any, what: str) -> str:
    """Return ``module:name`` of a class or function, from which a resumed run can import it.

    Raises:
        InputError: it cannot be imported by name; the message begins with ``what``.
    """
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    known = getattr(sys.modules.get(str(module)), str(name), None)
    if known is not thing or module is None:
        raise InputError(
            f"{what} {name or type(thing).__name__} cannot be imported by name when the run is resumed; "
            "define it with def or class at the top level of a module, script or notebook cell, and pass "
            "values to it with functools.partial"
        )
    return f"{module}:{name}"


def install(extra: str) -> str:
    """Return an instruction that installs one of Escalade's extras."""
    return f"install the extra '{extra}' of escalade (in a checkout: pip install '.[{extra}]')"


def missing(*packages: str) -> list[str]:
    """Return those of the ``packages`` that are not installed."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def check_installed(what: str, extra: str, *packages: str) -> None:
    """Check that the packages that ``what`` needs, and that ``extra`` installs, are there.

    Raises:
        InputError: a package is missing; the message names the extra that installs it.
    """
    if absent := missing(*packages):
        raise InputError(f"{what} needs {' and '.join(absent)}; {install(extra)}")
