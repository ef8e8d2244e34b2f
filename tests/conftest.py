"""Every test runs in an empty folder, so that nothing is left in the repository."""

import importlib.util
import os

import pytest


def pytest_collection_modifyitems(items):
    """Skip what names EnvPool, in the test's name or its parameters, where EnvPool is not installed.

    There are builds of it for Linux only.
    """
    if importlib.util.find_spec("envpool") is None:
        for item in items:
            if "envpool" in item.name:
                item.add_marker(pytest.mark.skip(reason="EnvPool is not installed"))


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory):
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    yield
    os.chdir(before)
