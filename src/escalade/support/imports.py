"""Code that the user names on the command line or in a config file."""

from __future__ import annotations

import importlib
import traceback
from types import ModuleType
from typing import Any

from escalade.errors import InputError, nearest, one_line, place_of


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
