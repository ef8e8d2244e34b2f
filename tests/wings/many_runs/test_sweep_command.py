"""``sweep``: trials are runs, a killed sweep resumes identically, the best trial is a config file."""

import base64
import json
import os
import shutil
import signal
import sys

import pytest
from tests.commands import Running

import escalade
from escalade.cli import main as cli
from escalade.config.files import read_config
from escalade.config.options import Config
from escalade.storage.run_folder import RunFolder
from escalade.support.numbers import number
from escalade.wings.many_runs.sweep import PARTS, load_sweep, part_of

PLAN = """
trials = {trials}
preset = "none"
seeds = [5]
[options]
env = "CartPole-v1"
backend = "gymnasium"
policy = "linear"
strategy = "openai-es"
generations = 4
eval_every = 1
eval_episodes = 2
max_episode_steps = 60
workers = 0
[space]
sigma = {{low = 0.01, high = 1.0, log = true}}
population = {{low = 4, high = 8, step = 2}}
strategy_options.optimizer = ["adam", "sgd"]
[pruning]
startup_trials = 1
warmup = 0.1
"""


def runs(folder, trial):
    return sorted(folder.glob(f"trial-{trial:04d}/seed*"))


def trials(folder):
    facts = ("number", "state", "value", "params", "intermediate_values")
    return [[getattr(one, fact) for fact in facts] for one in load_sweep(folder).trials]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A finished sweep and its output."""
    place, lines = tmp_path_factory.mktemp("sweep"), []
    (place / "poles.toml").write_text(PLAN.format(trials=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        escalade.sweep("poles.toml", log=lines.append)
    return place, "\n".join(lines)


def test_trials_are_runs_and_the_best_is_written_as_a_config_file(swept):
    place, out = swept
    folder = place / "runs" / "sweep-poles"
    found = load_sweep(folder)
    assert [trial.number for trial in found.trials] == list(range(4))
    assert {trial.state.name for trial in found.trials} == {"COMPLETE", "PRUNED"}
    for trial in found.trials:
        (run,) = runs(folder, trial.number)
        assert read_config(RunFolder(run)).seed == 5
        if trial.state.name == "COMPLETE":
            summary = json.loads((run / "summary.json").read_text())
            assert summary["stop_reason"] == "generations"
            assert trial.value == summary["eval_return_mean"]
            assert list(trial.intermediate_values) == list(range(1, PARTS))
    again = ["train", "--config", folder / "best.toml", "--preset", "none", "--run-dir", place / "best"]
    assert cli.main([str(word) for word in again]) == 0
    digests = [
        json.loads((run / "summary.json").read_text())["params_sha256"]
        for run in (place / "best", *runs(folder, found.best_trial.number))
    ]
    assert digests[0] == digests[1]
    assert f"the best is trial {found.best_trial.number} with return {number(found.best_value)}" in out
    assert len((folder / "trials.csv").read_text().splitlines()) == 5
    for picture in ("history.png", "parallel.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_a_report_of_a_sweep_shows_its_best_trial_and_its_pictures(swept, tmp_path, capsys):
    place, _ = swept
    folder = place / "runs" / "sweep-poles"
    assert cli.main(["report", str(folder), "--output", str(tmp_path / "r.html")]) == 0
    page, best = (tmp_path / "r.html").read_text(), load_sweep(folder).best_trial
    assert "<h2>Sweep: sweep-poles</h2>" in page
    assert f"<dt>best trial</dt><dd>{best.number}</dd>" in page
    assert f"<dt>optimizer</dt><dd>{best.params['optimizer']}</dd>" in page
    assert "seed5" in page
    drawn = [base64.b64encode(path.read_bytes()).decode() for path in sorted(folder.glob("*.png"))]
    assert len(drawn) >= 2
    assert all(f'src="data:image/png;base64,{data}"' in page for data in drawn)
    shutil.copytree(folder, tmp_path / "begun", ignore=shutil.ignore_patterns("study.jsonl*"))
    assert cli.main(["report", str(tmp_path / "begun")]) == 2
    assert "no trial of this sweep is complete" in capsys.readouterr().err


@pytest.mark.slow("src/escalade/wings/many_runs")
def test_a_killed_sweep_resumes_with_the_same_trials(swept, tmp_path):
    place, _ = swept
    shutil.copy(place / "poles.toml", tmp_path)
    running = Running("sweep", "poles.toml", "--run-dir", "again", cwd=tmp_path)
    running.until(lambda: len(list(tmp_path.glob("again/trial-0001/seed5/progress.csv"))) == 1)
    for process in running.family():
        process.kill()
    running.wait()
    with (tmp_path / "again" / "study.jsonl").open("a") as journal:
        journal.write('{"op_code": 4, "half')  # like a kill in the middle of a line
    lock = tmp_path / "again" / "study.jsonl.lock"
    lock.unlink(missing_ok=True)
    # Optuna locks a relative path, which is invalid in a different folder.
    lock.symlink_to("again/study.jsonl")
    assert cli.main(["sweep", str(tmp_path / "poles.toml"), "--run-dir", str(tmp_path / "again")]) == 0
    assert trials(tmp_path / "again") == trials(place / "runs" / "sweep-poles")


def test_ctrl_c_in_the_last_trials_of_parallel_jobs_leaves_the_sweep_unfinished(tmp_path):
    (tmp_path / "s.toml").write_text(PLAN.format(trials=2).replace("generations = 4", "generations = 99999"))
    running = Running("sweep", "s.toml", "--jobs", 2, cwd=tmp_path)
    folder = tmp_path / "runs" / "sweep-s"
    running.until(lambda: len(list(folder.glob("trial-*/seed5/progress.csv"))) == 2)
    running.signal(signal.SIGINT, group=True)
    assert running.wait() == 130, running.err
    assert "interrupted; run the same command again to continue" in running.out
    assert not any(trial.state.is_finished() for trial in load_sweep(folder).trials)


def test_the_folder_of_a_different_sweep_is_refused(swept, capsys, monkeypatch):
    place, _ = swept
    monkeypatch.chdir(place)
    (place / "other.toml").write_text(PLAN.format(trials=4).replace("sgd", "clipup"))
    assert cli.main(["sweep", "other.toml", "--run-dir", "runs/sweep-poles"]) == 2
    assert "contains a sweep with different space; choose a different --run-dir" in capsys.readouterr().err
    assert cli.main(["sweep", "other.toml", "--run-dir", "runs/sweep-poles/trial-0000"]) == 2
    assert "is not the folder of a sweep" in capsys.readouterr().err
    assert cli.main(["sweep", "missing.toml"]) == 2
    assert cli.main(["sweep", "other.toml", "--jobs", "0"]) == 2


def test_the_used_part_of_the_budget_is_that_of_the_nearest_limit():
    row = type("Row", (), {"generation": 2, "env_steps": 600, "seconds": 1.0})
    assert part_of(Config(env="any", generations=8), row) == PARTS // 4
    assert part_of(Config(env="any", generations=8, env_steps=1000, seconds=50), row) == PARTS * 3 // 5
    row.env_steps = None
    assert part_of(Config(env="any", env_steps=1000, seconds=4), row) == PARTS // 4


def test_a_failed_trial_is_named_and_the_others_continue(tmp_path, capsys):
    plan = PLAN.format(trials=2)
    (tmp_path / "s.toml").write_text(plan.replace("CartPole-v1", "tests.environments:Raises-v0"))
    assert cli.main(["sweep", str(tmp_path / "s.toml"), "--run-dir", str(tmp_path / "f")]) == 2
    out, err = capsys.readouterr()
    assert out.count(": failed: ") == 2
    assert "completed; see its trials.csv" in err


def test_a_missing_optuna_is_reported_with_its_extra(swept, tmp_path, monkeypatch, capsys):
    place, _ = swept
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert cli.main(["sweep", str(place / "poles.toml"), "--run-dir", str(tmp_path)]) == 2
    assert "a sweep needs optuna; install the extra 'sweep' of escalade" in capsys.readouterr().err


def test_trials_use_the_architecture_of_the_policy_they_start_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = {"preset": None, "workers": 0, "generations": 1, "eval_episodes": 1, "verbose": False}
    escalade.train("CartPole-v1", hidden=(3, 2), run_dir="source", **few)
    text = PLAN.format(trials=1).replace('policy = "linear"', 'start_from = "source"')
    (tmp_path / "on.toml").write_text(text.replace("generations = 4", "generations = 1"))
    # The first line is printed before a trial reads ``start_from``.
    escalade.sweep("on.toml", trials=2, run_dir="sweep", log=lambda line: os.chdir("/"))
    for trial in (0, 1):
        (run,) = runs(tmp_path / "sweep", trial)
        assert read_config(RunFolder(run)).hidden == (3, 2)
