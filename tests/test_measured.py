"""Tables of measurements say what the committed results of the runs say."""

import importlib.util

import pytest
from tests.commands import ROOT

from escalade.config import presets


@pytest.fixture(scope="module")
def measured():
    spec = importlib.util.spec_from_file_location("measured_presets", ROOT / "benchmarks" / "presets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_and_presets_have_the_committed_results(measured):
    for path, text in measured.pages().items():
        assert path.read_text() == text, f"{path.name}: run benchmarks/presets.py write"
    for env, result in measured.results().items():
        assert presets.read(env).result == result, f"{env}: run benchmarks/presets.py write"


def test_every_preset_with_a_result_was_run_with_ten_seeds(measured):
    ran = {key: {line["seed"] for line in lines} for key, lines in measured.groups().items()}
    assert all(seeds == set(range(10)) for seeds in ran.values()), ran
    named = {name for name in presets.names() if presets.read(name).result is not None}
    assert named == {name for name, backend in ran if backend == "auto"}
