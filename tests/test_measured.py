"""Tables of measurements match the committed results of the runs."""

import importlib.util
import subprocess
import sys

import pytest
from tests.commands import ROOT

from escalade.config import presets


@pytest.fixture(scope="module")
def measured():
    spec = importlib.util.spec_from_file_location("measured_presets", ROOT / "benchmarks" / "presets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow("benchmarks", "docs", "src/escalade/media", "src/escalade/wings/analysis")
def test_tables_and_pictures_match_the_committed_results():
    words = [sys.executable, "benchmarks/tables.py", "--check"]
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_preset_with_a_result_was_run_with_all_its_seeds(measured):
    for (env, target, backend), lines in measured.groups().items():
        assert [line["seed"] for line in lines] == [*measured.seeds_of(env)], (env, target, backend)
    named = {name for name in presets.names() if presets.read(name).result is not None}
    assert named == set(measured.results())
