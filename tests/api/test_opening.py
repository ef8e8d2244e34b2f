"""The first line of a run: its settings and stopping conditions."""

import pytest
import torch

import escalade
from escalade.api.opening import opening
from escalade.config.options import Config

ENDS = " No limit or target is set; press Ctrl-C to save the run and stop."


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"workers": 2, "seconds": 3.0}, "E: starting 2 workers…"),
        ({"workers": 1, "generations": 3}, "E: starting 1 worker…"),
        ({"workers": 0, "env_steps": 3}, "E: starting in this process…"),
        ({"workers": 2, "engine": "threads", "target_return": 3.0}, "E: starting 2 threads (target 3)…"),
        ({"workers": 0, "preset": "P", "seconds": 1.0}, "E: starting in this process (preset P)…"),
        (
            {"workers": 0, "preset": "P", "target_return": 0.5},
            "E: starting in this process (preset P, target 0.5)…",
        ),
        ({"workers": 2, "engine": "ray"}, "E: starting on a Ray cluster…" + ENDS),
        ({"workers": 0}, "E: starting in this process…" + ENDS),
    ],
)
def test_the_first_line_names_the_run_and_its_stopping_conditions(options, line):
    assert opening(Config(env="E", **options)) == line


def test_library_runs_print_the_first_line_unless_verbose_is_false(tmp_path, capsys):
    small = {"preset": None, "population": 4, "hidden": [4], "workers": 0}
    run = escalade.train("CartPole-v1", generations=1, run_dir=tmp_path / "run", **small)
    assert capsys.readouterr().out.splitlines()[0] == "CartPole-v1: starting in this process…"
    escalade.resume(run, generations=2)
    assert capsys.readouterr().out.splitlines()[0] == "CartPole-v1: starting in this process…"
    escalade.resume(run, generations=3, verbose=False)
    escalade.evolve(torch.nn.Linear(1, 1), lambda m: 0.0, population=4, generations=1)
    assert capsys.readouterr().out == ""


def test_the_first_line_needs_no_torch_import():
    import subprocess
    import sys

    code = "import sys; import escalade.cli.main, escalade.api.opening; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
