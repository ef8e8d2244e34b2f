"""The example notebooks run from top to bottom, and are stored without outputs."""

import json
import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
FEWER = {"train": "GENERATIONS = 3", "evolve": "GENERATIONS = 60"}
SAYS = {"train": "evaluations: [", "evolve": "right: 8 of 8"}


def test_every_notebook_is_tested_and_stored_without_outputs():
    assert set(NOTEBOOKS) == set(FEWER)
    for name in NOTEBOOKS:
        for cell in json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None


@pytest.mark.slow("examples", "src/escalade/wings/screens/notebook.py")
@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.filterwarnings("ignore")  # from the kernel's client; a warning of our own code fails in its cell
def test_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(FOLDER.parent / "src"), os.environ.get("PYTHONPATH", "")])
    )
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    cells[0].source = cells[0].source.replace(
        next(line for line in cells[0].source.splitlines() if line.startswith("GENERATIONS")), FEWER[name]
    )
    nbclient.NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in cells for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "there is no live plot"
    assert any("<table>" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert SAYS[name] in "".join(output.get("text", "") for output in outputs)
