"""A cluster that loses and gains nodes during a run: the one-minute version of the benchmark."""

import os

import pytest
from tests.commands import ROOT

pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow(
        "src/escalade/engines",
        "src/escalade/wings/cluster",
        "tests/wings/cluster",
        "cluster",
        "benchmarks/ray_faults.py",
    ),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_run_with_injected_faults_is_identical_to_an_undisturbed_one(tmp_path, monkeypatch):
    from benchmarks.ray_faults import VARIABLES, trial

    for name, value in (VARIABLES | {"PYTHONPATH": str(ROOT)}).items():
        monkeypatch.setitem(os.environ, name, value)
    found = trial(tmp_path, seconds=10, seed=2, driver_kills=1, nodes=2, pause=(0.5, 2.5))
    assert found["faults"]["drivers killed"] == 1
    assert sum(found["faults"].values()) >= 3
    assert found["generations"] >= 2
