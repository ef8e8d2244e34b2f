"""The examples in docstrings produce the output shown."""

import doctest
import importlib

import pytest

MODULES = [
    "escalade.api.evolve",
    "escalade.strategies.shaping",
    "escalade.strategies.ars",
    "escalade.strategies.base",
    "escalade.strategies.cem",
    "escalade.strategies.cma",
    "escalade.strategies.openai_es",
    "escalade.strategies.pgpe",
    "escalade.strategies.schedules",
    "escalade.strategies.sep_cma",
    "escalade.strategies.simple_gaussian",
    "escalade.strategies.snes",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0
