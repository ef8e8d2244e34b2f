"""Registry of recorders."""

import sys
import types

import pytest
from tests.recording import Recording
from torch import nn

import escalade
from escalade import InputError
from escalade.recorders import Goals, ProgressFile
from escalade.recorders.registry import RECORDERS, RunInfo, check_recorders, start_recorder
from escalade.storage.run_folder import RunFolder


class Counting:
    """A recorder like the one in the guide."""

    def __init__(self, run):
        self.path, self.rows = run.folder.path / "count.txt", 0

    def generation(self, row):
        self.rows += 1

    def note(self, text):
        pass

    def close(self):
        self.path.write_text(str(self.rows))


@pytest.fixture
def run(tmp_path):
    return RunInfo(RunFolder(tmp_path), Goals("a run"))


def test_every_name_makes_a_recorder(run):
    made = {
        name: start_recorder(name, run)
        for name in RECORDERS
        if not RECORDERS[name].home.startswith("escalade.wings")
    }
    for recorder in made.values():
        recorder.note("a note")
        recorder.close()
    assert isinstance(made["csv"], ProgressFile)


def test_a_class_is_not_a_recorder(run):
    with pytest.raises(InputError, match=r"^`recorders`: .*Counting.* is not a recorder: use an object"):
        check_recorders([Counting])
    check_recorders([Counting(run)])


def test_a_function_that_returns_no_recorder_raises_one_line(run):
    with pytest.raises(InputError, match=r"^`recorder`: .*:replaced is not a recorder: use an object"):
        start_recorder(f"{__name__}:replaced", run)


def replaced(run):
    return run


def test_recorders_receive_the_options_of_evolve(tmp_path, monkeypatch):
    received = {}

    def start(run):
        received.update(run.options)
        return Recording()

    monkeypatch.setitem(sys.modules, "its_recorder", types.SimpleNamespace(start=start))
    options = {"population": 6, "generations": 1, "sigma": 0.2, "run_dir": tmp_path / "run"}
    escalade.evolve(nn.Linear(2, 1), lambda module: 1.0, recorders=["its_recorder:start"], **options)
    assert (received["population"], received["sigma"], received["strategy"]) == (6, 0.2, "openai-es")
