"""The library in editors and notebooks: names, keywords, results, history."""

import json
import subprocess
import sys

import pytest
import torch
from tests import keywords
from tests.commands import DEADLINE

import escalade
from escalade.recorders import COLUMNS, History


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("looks") / "<run>"
    small = {"population": 4, "hidden": [4], "generations": 3, "eval_every": 2, "eval_episodes": 2}
    return escalade.train("CartPole-v1", preset=None, workers=0, verbose=False, run_dir=folder, **small)


@pytest.mark.parametrize("package", ["escalade", "escalade.strategies", "escalade.envs"])
def test_dir_lists_public_names_without_importing_torch(package):
    code = "import importlib, json, sys; m = importlib.import_module(sys.argv[1])\n"
    code += "print(json.dumps([dir(m), m.__all__, 'torch' in sys.modules]))"
    command = [sys.executable, "-c", code, package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=True)
    listed, public, torch_came = json.loads(done.stdout)
    assert set(public) == {name for name in listed if not name.startswith("__")}
    assert len(listed) == len(set(listed))
    assert "__name__" in listed
    assert not torch_came


def test_keywords_in_signatures_match_the_options():
    assert keywords.PLACE.read_text() == keywords.stub(), "python -m tests.keywords writes it anew"


def test_a_run_has_a_one_line_repr_and_an_html_table(run):
    line, page = repr(run), run._repr_html_()
    assert line.startswith(f"Run('{run.folder.path}', eval_return_mean=")
    assert "generations=3" in line
    assert "stop_reason=generations" in line
    assert len(line) < 300
    assert "&lt;run&gt;" in page
    assert "<run>" not in page
    assert "<th style='text-align:left'>stop_reason</th><td style='text-align:left'>generations</td>" in page


def test_a_result_of_evolve_has_a_one_line_repr_and_an_html_table():
    found = escalade.evolve(torch.nn.Linear(200, 20), lambda m: 1.0, population=4, generations=2)
    assert len(repr(found)) < 300
    assert "Linear with 4,020 parameters, evolved" in found._repr_html_()
    assert len(found._repr_html_()) < 1000


def test_history_is_indexed_by_row_number_and_column_name(run):
    history = run.history
    assert [row.generation for row in history] == history["generation"] == [1, 2, 3]
    assert history[-1].generation == 3
    assert isinstance(history[:2], History)
    assert list(dict(history)) == list(COLUMNS)
    assert history["eval_return_mean"][1] is None
    assert history["eval_return_mean"][2] is not None
    assert repr(history) == "History(3 generations)"
    with pytest.raises(KeyError, match="'returns' is not a column; choose one of generation, episodes"):
        history["returns"]


def test_the_live_plot_updates_a_single_figure(run, monkeypatch):
    pytest.importorskip("IPython")
    pytest.importorskip("matplotlib")
    import IPython.display

    from escalade.recorders import Goals, RunInfo
    from escalade.wings.screens.notebook import NotebookPlot

    shown, updated = [], []

    class Handle:
        update = staticmethod(updated.append)

    monkeypatch.setattr(IPython.display, "display", lambda it, display_id: shown.append(it) or Handle)
    plot = NotebookPlot(RunInfo(None, Goals("t", target_return=475.0)))
    for row in run.history:
        plot.generation(row)
    plot.close()
    assert len(shown) == 1
    assert updated
    assert all(picture.data.startswith(b"\x89PNG") for picture in shown + updated)


def test_the_live_plot_reports_what_it_needs(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        escalade.InputError, match=r"needs matplotlib and IPython; install the extra 'notebook' of escalade"
    ):
        escalade.train("CartPole-v1", recorders=["notebook"])


GOOD = """
import escalade
from escalade import Recorder, Row, View
from escalade.strategies import CMAES, Strategy

def see(view: View) -> None:
    row: Row = view.row
    print(row.generation)

kept: list[Recorder] = []
run = escalade.train("E", hidden=16, engine="local", callbacks=[see], recorders=kept, on_interrupt="return")
runs = escalade.train("E", seeds=[1], hidden=[16, 16])
print(run.summary, [one.folder for one in runs])
es: Strategy = CMAES([0.0])
"""
BAD = """
import escalade
from escalade import trian
from escalade.strategies import OpenAIE
from torch.nn import Linear
escalade.evalute("E").nonsense
escalade.strategies.OpenAIE
escalade.train("E", hidden="16")
escalade.train("E", activation="tahn", seed=1)
escalade.resume("E", engine="ryy")
escalade.evolve(Linear(1, 1), lambda module: 0.0, engine="thread")
escalade.evaluate("E", backend="gym")
escalade.check("E", backend="gym")
"""


@pytest.mark.slow("src/escalade/__init__.py", "src/escalade/strategies/__init__.py", "src/escalade/config")
@pytest.mark.parametrize(("code", "wrong"), [(GOOD, []), (BAD, [3, 4, *range(6, 14)])], ids=["good", "bad"])
def test_type_checkers_check_option_names_and_values(code, wrong):
    from mypy import api

    found, _, _ = api.run(["--strict", "-c", code])
    assert sorted(int(line.split(":")[1]) for line in found.splitlines() if ": error: " in line) == wrong
