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


def test_every_preset_with_a_result_was_run_with_all_its_seeds(measured):
    for (env, target, backend), lines in measured.groups().items():
        assert [line["seed"] for line in lines] == [*measured.seeds_of(env, target)], (env, target, backend)
    named = {name for name in presets.names() if presets.read(name).result is not None}
    assert named == set(measured.results())
