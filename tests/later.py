"""Modules that take long to import: every test process collects all tests, and runs few of them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class Later:
    """A module that is imported when one of its names is asked for first."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # as pytest asks everything that stands in a test's file
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def needs(package: str) -> pytest.MarkDecorator:
    """The mark of tests that are skipped where ``package`` is not installed; nothing is imported for it."""
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")
