"""A sweep that ended in a trial because of a full disk or Ctrl-C resumes that trial."""

import errno
import os
import signal

import pytest
from tests.commands import summary
from tests.later import Later, needs

import escalade
from escalade import StorageFailure
from escalade.storage.run_folder import RunFolder
from escalade.wings.many_runs import sweep as sweeps
from escalade.wings.many_runs import sweep_study
from escalade.wings.many_runs.sweep_study import PICTURES, draw_pictures

optuna = Later("optuna")

pytestmark = needs("optuna")

PLAN = """
trials = {trials}
preset = "none"
seeds = {seeds}
[options]
env = "tests.environments:Walk-v0"
backend = "gymnasium"
policy = "linear"
generations = 1
population = 4
eval_episodes = 1
workers = 0
[space]
sigma = {{low = 0.01, high = 1.0, log = true}}
"""


@pytest.fixture
def undrawn(monkeypatch):
    """Skip pictures, which take most of the time of a small sweep."""
    monkeypatch.setattr(sweep_study, "plotting_available", lambda: False)


def swept(place, lines, seeds=(5,), **options):
    (place / "s.toml").write_text(PLAN.format(trials=2, seeds=[*seeds]))
    return escalade.sweep(place / "s.toml", run_dir=place / "sweep", log=lines.append, **options)


def ended_by(problem, monkeypatch):
    """Make every run of a sweep raise ``problem``."""

    def run_series(planned, **given):
        raise problem
        yield

    monkeypatch.setattr(sweeps, "run_series", run_series)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("problem", [StorageFailure("the disk is full"), KeyboardInterrupt()])
def test_an_interrupted_sweep_leaves_its_trial_to_be_resumed(problem, jobs, tmp_path, monkeypatch, undrawn):
    lines = []
    with monkeypatch.context() as patch:
        ended_by(problem, patch)
        with pytest.raises(type(problem)):
            swept(tmp_path, lines, jobs=jobs)
    assert not any("failed" in line for line in lines)
    assert sweeps.states(sweeps.load_sweep(tmp_path / "sweep")).keys() == {"running"}
    study = swept(tmp_path, lines)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]


SET_TRIAL_PARAM = 5  # the code of this operation in Optuna's journal


def test_a_full_disk_under_optunas_journal_is_reported_in_one_line_and_the_sweep_resumes(
    tmp_path, monkeypatch, undrawn
):
    lines, append = [], optuna.storages.journal.JournalFileBackend.append_logs

    def full(journal, logs):
        if logs[0]["op_code"] != SET_TRIAL_PARAM:
            return append(journal, logs)
        with open(journal._file_path, "a") as file:
            file.write('{"op_code":')
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(optuna.storages.journal.JournalFileBackend, "append_logs", full)
        with pytest.raises(StorageFailure, match=r"sweep could not be written \(No space left"):
            swept(tmp_path, lines)
    study = swept(tmp_path, lines)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]


def test_a_keyboard_interrupt_while_a_run_writes_its_last_files_starts_no_further_trial(
    tmp_path, monkeypatch, undrawn
):
    lines, write = [], RunFolder.write_summary

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        write(*given)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_summary", interrupted)
        with pytest.raises(KeyboardInterrupt):
            swept(tmp_path, lines)
    begun = sorted(path.parent.parent.name for path in tmp_path.glob("sweep/trial-*/seed5/config.toml"))
    assert begun == ["trial-0000"]
    assert sweeps.states(sweeps.load_sweep(tmp_path / "sweep"))["complete"] == 1
    study = swept(tmp_path, lines)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_environment_failure_fails_only_its_own_trial(jobs, tmp_path, monkeypatch, undrawn):
    lines, run_series = [], sweeps.run_series

    def run(planned, **given):
        if "trial-0000" in str(planned[0].folder):
            raise escalade.EnvironmentFailure("the arm fell off")
        yield from run_series(planned, **given)

    monkeypatch.setattr(sweeps, "run_series", run)
    study = swept(tmp_path, lines, jobs=jobs)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE"]
    assert [line for line in lines if line.startswith("trial 0: failed: the arm fell off")]


def test_the_value_of_a_trial_is_the_mean_over_its_seeds(tmp_path, undrawn):
    study = swept(tmp_path, [], seeds=(3, 4))
    for trial in study.trials:
        two = [summary(run) for run in sorted(tmp_path.glob(f"sweep/trial-{trial.number:04d}/seed*"))]
        assert [run["seed"] for run in two] == [3, 4]
        assert trial.value == sum(run["eval_return_mean"] for run in two) / 2


def test_a_sweep_writes_only_pictures_with_enough_trials(tmp_path):
    study = optuna.create_study(direction="maximize")
    space = {"sigma": optuna.distributions.FloatDistribution(0.01, 1.0)}
    for value in (1.0, 2.0, 3.0):
        study.add_trial(optuna.create_trial(params={"sigma": value / 4}, distributions=space, value=value))
    assert draw_pictures(study, tmp_path) == ["history.png", "parallel.png"]
    study.add_trial(optuna.create_trial(params={"sigma": 1.0}, distributions=space, value=0.0))
    assert draw_pictures(study, tmp_path) == list(PICTURES)
    for name in PICTURES:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
