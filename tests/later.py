"""Lazy imports of slow modules, because every test process collects all tests but runs few of them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class Later:
    """A module that is imported on first use of one of its names."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest inspects every object in a test file
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def needs(package: str) -> pytest.MarkDecorator:
    """Return the mark that skips tests if ``package`` is not installed, without importing it."""
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")
