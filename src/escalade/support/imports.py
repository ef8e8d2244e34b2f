"""Modules, classes and packages by name: lazy names, a user's own code, and missing packages."""

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
    """A package's ``__getattr__`` and ``__dir__`` (PEP 562).

    The one finds ``name`` in the module ``homes[name]``. The other lists also names which are not imported
    yet: editors complete them.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with random_kept():  # other people's packages
            module = importlib.import_module(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    def names() -> list[str]:
        module = sys.modules[package]
        return sorted({*vars(module), *module.__all__})

    return find, names


@contextmanager
def random_kept() -> Iterator[None]:
    """Leave Python's ``random`` as it was found, for imports of packages that draw from it."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


def import_named(module: str, what: str) -> ModuleType:
    """Import ``module``, which ``what`` (an option and its value) names.

    Raises:
        InputError: there is no such module, or it fails; the message begins with ``what``.
    """
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever the module's own code raises
        said = str(problem) if isinstance(problem, ImportError) else one_line(problem)
        # These three types name their place themselves or need none; a place within importlib helps nobody.
        where = traceback.extract_tb(problem.__traceback__)[-1].filename
        if not isinstance(problem, ImportError | SyntaxError | SystemExit) and "importlib" not in where:
            said += f", {place_of(problem)}"
        # Not if its package was found, and it was not in that.
        missing = isinstance(problem, ModuleNotFoundError) and problem.name == module.partition(".")[0]
        mend = ": run this in the folder that holds it, or set PYTHONPATH to that folder" if missing else ""
        raise InputError(f"{what}: module {module} cannot be imported ({said}){mend}") from None


def imported(home: str, what: str) -> Any:
    """The class or function ``package.module:Name`` of a user, named in ``what``, an option and its value.

    Raises:
        InputError: the module cannot be imported, or has nothing of that name that can be called.
    """
    module_name, _, name = home.partition(":")
    module = import_named(module_name, what)
    found = getattr(module, name, None)
    if not callable(found):
        near = nearest(name, [known for known in vars(module) if not known.startswith("_")])
        raise InputError(f"{what}: module {module_name} has no {name}{near}")
    return found


def called(thing: object) -> str:
    """The name of a function or a class, without its module; a name as it is."""
    named = getattr(thing, "func", thing)  # what a partial calls
    return named if isinstance(named, str) else getattr(named, "__name__", type(named).__name__)


def name_of(thing: Any, what: str) -> str:
    """``module:name`` of a class or function, by which a resumed run finds it again.

    Raises:
        InputError: it has no such name; the message begins with ``what``.
    """
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    known = getattr(sys.modules.get(str(module)), str(name), None)
    if known is not thing or module is None:
        raise InputError(
            f"{what} {name or type(thing).__name__} has no name that a resumed run could find: define it "
            "with def or class at the top of a module, a script or a notebook's cell, and pass the values "
            "that it uses with functools.partial"
        )
    return f"{module}:{name}"


def install(extra: str) -> str:
    """The line that installs one of Escalade's extras, as a package and in a checkout."""
    return f"pip install 'escalade[{extra}]' (in a checkout: pip install '.[{extra}]')"


def missing(*packages: str) -> list[str]:
    """The ``packages`` that are not installed."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def check_installed(what: str, extra: str, *packages: str) -> None:
    """Refuse ``what`` where one of its packages, which ``extra`` installs, is missing.

    Raises:
        InputError: one is; the message has the command that installs it.
    """
    if absent := missing(*packages):
        raise InputError(f"{what} needs {' and '.join(absent)}: {install(extra)}")
