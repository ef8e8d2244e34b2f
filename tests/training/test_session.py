"""Files of an earlier run when a run starts or continues in the same folder."""

import gc

import pytest
from tests.commands import final_digest
from torch import nn

import escalade
from escalade import EnvironmentFailure
from escalade.cli import main as cli
from escalade.media.curves import evaluations, read_curves
from escalade.perturbation import NoiseTable
from escalade.recorders import WorkersFile, read_notes, read_table
from escalade.training.closing import closing_lines
from escalade.training.loop import Loop

WALK = "tests.environments:Walk-v0"
TINY = {"preset": None, "population": 4, "hidden": [3], "workers": 0, "eval_episodes": 1, "verbose": False}


def fitness(module):
    return -float(module.weight.square().sum())


def evolve(folder, **options):
    return escalade.evolve(nn.Linear(2, 1), fitness, population=4, run_dir=folder, **options)


def table(path, columns, generations):
    """Write a table with one row per generation, as left by a killed cluster run."""
    rows = [",".join([str(generation), *["1"] * (len(columns) - 1)]) for generation in generations]
    path.write_text("\n".join([",".join(columns), *rows, "9,cut sh"]))


def test_evolve_run_killed_at_its_start_is_restarted_from_scratch(tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    stray = tmp_path / "run" / "checkpoints" / ".generation-000000.escalade-99999999.tmp.safetensors"
    stray.write_bytes(b"half")
    (tmp_path / "run" / "config.toml").write_text('run = "evolve"\n')
    (tmp_path / "run" / "notes.csv").write_text("generation,note\n0,of the one that was killed\n")
    table(tmp_path / "run" / "workers.csv", WorkersFile.COLUMNS, [1])
    result = evolve(tmp_path / "run", generations=2, resume=True)
    assert result.generations == 2
    assert not stray.exists()
    assert "of the one that was killed" not in read_notes(result.folder.notes)
    assert read_table(result.folder.workers) == {name: [] for name in WorkersFile.COLUMNS}


def test_resume_truncates_the_worker_table_to_the_checkpoint_with_any_engine(tmp_path):
    run = escalade.train(WALK, run_dir=tmp_path / "run", generations=3, snapshot_every=1, **TINY)
    table(run.folder.workers, WorkersFile.COLUMNS, [1, 2, 2, 3, 3])
    run.folder.checkpoints.drop_after(2)
    escalade.resume(run, generations=4, verbose=False)  # in this process, which writes no worker rows
    assert read_table(run.folder.workers)["generation"] == ["1", "2", "2"]
    assert run.folder.workers.read_text().endswith("\n")


def live_tables():
    return sum(type(one) is NoiseTable for one in gc.get_objects())


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("backend", [None, "auto", "gymnasium"])
def test_finished_run_frees_its_noise_table(backend, workers, tmp_path):
    options = {"population": 4, "generations": 1, "workers": workers, "verbose": True}

    def run(name):
        if backend is not None:
            options.update(preset=None, backend=backend)
            escalade.train("CartPole-v1", run_dir=tmp_path / name, **options)
        else:
            escalade.evolve(nn.Linear(2, 1), fitness, run_dir=tmp_path / name, **options)

    run("first")  # imports keep their frames alive once
    gc.collect()
    gc.disable()
    try:
        before = live_tables()
        for name in "ab":
            run(name)
        assert live_tables() == before
    finally:
        gc.enable()


def test_environment_exception_frees_the_noise_table(tmp_path):
    def fail(name):
        with pytest.raises(EnvironmentFailure, match="raised"):
            escalade.train("tests.environments:Raises", run_dir=tmp_path / name, preset=None, workers=0)

    fail("first")
    gc.collect()
    gc.disable()
    try:
        before = live_tables()
        fail("second")
        assert live_tables() == before
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "flags", [["--preset", "none", "--hidden", "3"], ["--lr", "none", "--target-return", "none"]]
)
def test_saved_config_reproduces_the_run_despite_preset_defaults(flags, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny = ["--population", "4", "--strategy", "ars:top_directions=2", "--workers", "0", "--generations", "2"]
    assert cli.main(["train", "CartPole-v1", *flags, *tiny, "--run-dir", "first"]) == 0
    assert cli.main(["train", "--config", "first/config.toml", "--run-dir", "again"]) == 0
    assert final_digest(tmp_path / "first") == final_digest(tmp_path / "again")
    first, again = ((tmp_path / run / "config.toml").read_text() for run in ("first", "again"))
    assert first.replace("/first", "/again") == again


def test_evaluation_older_than_the_policy_is_labeled(tmp_path, monkeypatch):
    options = TINY | {"generations": 5, "eval_every": 3}  # with evaluations in generations 1 and 4
    whole = escalade.train(WALK, run_dir=tmp_path / "whole", **options)
    monkeypatch.setattr(Loop, "_evaluate_at_end", lambda loop: True)  # as after Ctrl-C
    cut = escalade.train(WALK, run_dir=tmp_path / "cut", **options)
    assert [run.summary["updates_since_evaluation"] for run in (whole, cut)] == [0, 2]
    assert " over 1 episode (center of generation 3 of 5), " in next(closing_lines(cut.summary, None))
    ends = [evaluations(read_curves(run.folder.path), "generations")[0][-1] for run in (whole, cut)]
    assert ends == [5, 4]
    curves = read_curves(whole.folder.path)
    assert curves.progress["seconds"][-1] <= whole.summary["seconds"]  # both rounded the same way
    _, values = evaluations(curves, "seconds")
    assert values[-1] == pytest.approx(whole.summary["eval_return_mean"])
