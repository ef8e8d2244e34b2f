"""Names of a package that import their module when first used, so that a mistyped flag need not
wait for torch.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


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
