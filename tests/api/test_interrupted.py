"""An interrupted library call raises KeyboardInterrupt after saving, or returns the run."""

import signal

import pytest

import escalade
from escalade.storage.run_folder import RunFolder

SMALL = {
    "preset": None,
    "policy": "linear",
    "population": 4,
    "workers": 0,
    "eval_episodes": 1,
    "max_episode_steps": 9,
}
SMALL |= {"verbose": False, "generations": 5}


def interrupt(view):
    if view.row.generation == 2:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_ends_the_callers_loop_and_the_run_is_saved(tmp_path):
    def loop():
        for seed in range(3):
            folder = tmp_path / f"seed{seed}"
            escalade.train("CartPole-v1", seed=seed, run_dir=folder, callbacks=[interrupt], **SMALL)

    with pytest.raises(KeyboardInterrupt, match="seed0 is saved"):
        loop()
    assert [folder.name for folder in tmp_path.iterdir()] == ["seed0"]
    done = escalade.resume(tmp_path / "seed0", verbose=False)
    whole = escalade.train("CartPole-v1", seed=0, run_dir=tmp_path / "whole", **SMALL)
    assert done.summary["params_sha256"] == whole.summary["params_sha256"]


def test_an_interrupt_ends_a_series_and_a_resumed_run(tmp_path):
    with pytest.raises(KeyboardInterrupt, match="seed1 is saved"):
        escalade.train("CartPole-v1", seeds=[1, 2], run_dir=tmp_path / "s", callbacks=[interrupt], **SMALL)
    assert [folder.name for folder in (tmp_path / "s").glob("seed*")] == ["seed1"]
    run = escalade.train("CartPole-v1", run_dir=tmp_path / "r", **SMALL | {"generations": 1})
    with pytest.raises(KeyboardInterrupt, match="r is saved"):
        escalade.resume(run, generations=4, callbacks=[interrupt], verbose=False)


def test_an_interrupted_run_is_returned_on_request(tmp_path):
    options = SMALL | {"callbacks": [interrupt], "on_interrupt": "return"}
    run = escalade.train("CartPole-v1", run_dir=tmp_path / "r", **options)
    assert (run.summary["stop_reason"], run.summary["generations"]) == ("interrupted", 2)
    runs = escalade.train("CartPole-v1", seeds=[1, 2], run_dir=tmp_path / "s", **options)
    assert [one.summary["stop_reason"] for one in runs] == ["interrupted"]
    with pytest.raises(escalade.InputError, match="on_interrupt"):
        escalade.train("CartPole-v1", on_interrupt="ignore", **SMALL)
    with pytest.raises(escalade.InputError, match="on_interrupt"):
        escalade.resume(run, on_interrupt="ignore")


def test_an_interrupt_after_the_last_generation_is_raised(tmp_path, monkeypatch):
    write = RunFolder.write_summary

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        write(*given)

    monkeypatch.setattr(RunFolder, "write_summary", interrupted)
    with pytest.raises(KeyboardInterrupt):
        escalade.train("CartPole-v1", run_dir=tmp_path / "r", **SMALL)
    assert (tmp_path / "r" / "summary.json").exists()
