"""A seed determines the result on any number of workers, after kills, and after resumes.

The tests compare ``params_sha256``, the digest of the final center and normalizer.
"""

import os
import random
import signal

import numpy as np
import pytest
from tests.commands import command, final_digest, running, summary, temporary_files, wait_until

import escalade
from escalade.engines.processes import ProcessEngine
from escalade.recorders import read_progress
from escalade.storage.tensors import read

SMALL = {
    "preset": None,
    "population": 16,
    "hidden": [8],
    "seed": 3,
    "eval_every": 2,
    "eval_episodes": 3,
    "verbose": False,
}


def trained(folder, env, workers, backend="gymnasium", **options):
    everything = SMALL | {"workers": workers, "backend": backend, "generations": 3} | options
    return escalade.train(env, run_dir=str(folder), **everything)


@pytest.mark.parametrize(
    ("env", "backend", "counts"),
    [
        ("CartPole-v1", "gymnasium", (0, 3)),  # benchmarks/determinism.py tests every combination
        ("HalfCheetah-v5", "envpool", (0, 2)),
        ("HalfCheetah-v5", "mujoco", (0, 2)),
    ],
)
def test_the_number_of_workers_does_not_change_the_result(env, backend, counts, tmp_path):
    runs = {}
    for workers in counts:
        folder = tmp_path / str(workers)
        runs[workers] = trained(folder, env, workers, backend, max_episode_steps=25).summary
    assert len({run["params_sha256"] for run in runs.values()}) == 1
    assert len({run["eval_return_mean"] for run in runs.values()}) == 1
    assert len({run["env_steps"] for run in runs.values()}) == 1
    assert runs[0]["backend"] == backend


def test_a_different_seed_gives_a_different_result(tmp_path):
    first = trained(tmp_path / "a", "CartPole-v1", 0, seed=3).summary["params_sha256"]
    second = trained(tmp_path / "b", "CartPole-v1", 0, seed=4).summary["params_sha256"]
    assert first != second


@pytest.mark.filterwarnings("ignore:.*returned nan:RuntimeWarning")
@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "ars:top_directions=3", "perturbation": "low-rank:2", "hidden": [20, 12]},
        {
            "strategy": "openai-es:shaping=nes,optimizer=sgd,weight_decay=0.01",
            "sigma": "exponential:0.1:0.9",
            "normalize_observations": False,
            "episodes_per_member": 2,
        },
        {"env": "tests.environments:Walk-v0", "action_noise": 0.3},
        {"env": "tests.environments:Diverges-v0", "episodes_per_member": 2},
    ],
    ids=["low-rank", "sgd", "noise", "nan"],
)
def test_a_resumed_run_equals_an_uninterrupted_one(options, tmp_path):
    env = options.pop("env", "CartPole-v1")
    whole = trained(tmp_path / "whole", env, 0, generations=4, **options)
    # Workers take seconds to start, and do not affect any of these results.
    several = "perturbation" in options
    trained(tmp_path / "parts", env, 2 * several, generations=2, **options)
    for generations, workers in ((3, 1 * several), (4, 0)):
        escalade.resume(tmp_path / "parts", generations=generations, workers=workers, verbose=False)
    assert final_digest(tmp_path / "parts") == final_digest(tmp_path / "whole")
    policies = [
        sorted(path.name for path in (tmp_path / run).glob("*.safetensors")) for run in ("parts", "whole")
    ]
    assert policies[0] == policies[1] != []
    for name in policies[0]:
        (first, state), (second, other) = (read(tmp_path / run / name) for run in ("parts", "whole"))
        assert state == other
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[key], second[key]) for key in first)
    timed = ("seconds", "steps_per_second")
    tables = [read_progress(tmp_path / run / "progress.csv") for run in ("whole", "parts")]
    for name in tables[0]:
        if name not in timed:
            assert str(tables[0][name]) == str(tables[1][name]), name
    assert len(tables[0]["generation"]) == whole.summary["generations"] == 4


FLAGS = ["--preset", "none", "--population", "16", "--hidden", "8", "--seed", "3", "--workers", "2"]
FLAGS += ["--eval-every", "5", "--eval-episodes", "3", "--max-episode-steps", "30"]


def test_a_run_killed_and_resumed_repeatedly_equals_an_uninterrupted_one(tmp_path):
    """The run has no limit, so it cannot end before the kill."""
    run, rows = tmp_path / "run", 0
    arguments = ["train", "CartPole-v1", *FLAGS, "--generations", 10**6, "--run-dir", run]
    for more in (0, 7):  # the first is killed as soon as the run can be resumed, the second during training
        with running(*arguments, cwd=tmp_path) as process:
            least = rows + more
            process.until((run / "config.toml").exists)
            process.until(lambda least=least: progress_rows(run) >= least)
            process.signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
            wait_until(lambda process=process: process.family() == [])
        rows = progress_rows(run)
        assert not (run / "summary.json").exists()
        arguments = ["resume", run]
    length = rows + 3
    result = command("resume", run, "--generations", length, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "resuming" in result.stdout
    trained(
        tmp_path / "whole", "CartPole-v1", 0, "auto", max_episode_steps=30, eval_every=5, generations=length
    )
    assert final_digest(run) == final_digest(tmp_path / "whole")
    assert progress_rows(run) == length
    assert temporary_files(run) == []


def progress_rows(run):
    try:
        return max(0, len((run / "progress.csv").read_bytes().splitlines()) - 1)
    except FileNotFoundError:
        return -1


def test_killed_workers_do_not_change_the_result(tmp_path, monkeypatch):
    env, options = "CartPole-v1", {"max_episode_steps": 60, "generations": 8, "population": 32}
    trained(tmp_path / "calm", env, 0, **options)
    deaths, chance = [], random.Random(7)
    run_job = ProcessEngine.run

    def harassed(engine, job, items):
        # Some workers die before they receive the job, some while results are missing.
        moments = [chance.randrange(2 * items) for pid in engine.pids if chance.random() < 0.5]
        for _ in [moment for moment in moments if moment >= items]:
            kill(chance.choice(engine.pids), deaths)
        later, waited = [moment for moment in moments if moment < items], engine.on_wait

        def wait():
            while later and engine._results.missing <= max(later):
                later.remove(max(later))
                kill(chance.choice(engine.pids), deaths)
            waited()

        engine.on_wait = wait
        try:
            return run_job(engine, job, items)
        finally:
            engine.on_wait = waited

    monkeypatch.setattr(ProcessEngine, "run", harassed)
    trained(tmp_path / "harassed", env, 2, **options)
    assert len(deaths) >= 4
    assert final_digest(tmp_path / "harassed") == final_digest(tmp_path / "calm")
    assert summary(tmp_path / "harassed")["workers"] == 2


def kill(pid, deaths):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    deaths.append(pid)


def test_a_run_killed_before_its_first_checkpoint_restarts_on_resume(tmp_path):
    whole = trained(tmp_path / "whole", "CartPole-v1", 0)
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / ".generation-000000.escalade-99999999.tmp.safetensors").write_bytes(b"half")
    text = (whole.folder.config).read_text().replace(str(tmp_path / "whole"), str(run))
    (run / "config.toml").write_text(text)
    again = escalade.resume(run, verbose=False)
    assert again.summary["params_sha256"] == whole.summary["params_sha256"]
    assert temporary_files(run) == []
