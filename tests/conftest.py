"""Every test runs in an empty folder, so that nothing is left in the repository."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory):
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    yield
    os.chdir(before)
