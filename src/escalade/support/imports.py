"""Code that the user names on the command line or in a config file."""

from __future__ import annotations

import importlib
from types import ModuleType

from escalade.errors import InputError


def import_named(module: str, what: str) -> ModuleType:
    """Import ``module``, which ``what`` (an option and its value) names.

    Raises:
        InputError: there is no such module, or it fails; the message begins with ``what``.
    """
    try:
        return importlib.import_module(module)
    except Exception as problem:  # noqa: BLE001 - whatever the module's own code raises
        kind = "" if isinstance(problem, ImportError) else f"{type(problem).__name__}: "
        missing = isinstance(problem, ModuleNotFoundError) and f"{module}.".startswith(f"{problem.name}.")
        mend = ": run this in the folder that holds it, or set PYTHONPATH to that folder" if missing else ""
        raise InputError(f"{what}: module {module} cannot be imported ({kind}{problem}){mend}") from None
