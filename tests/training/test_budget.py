"""A budget of seconds also interrupts endless episodes, and the run can continue without loss."""

import pytest
import torch
from tests.commands import final_digest
from tests.environments import Walk  # noqa: F401 - registers the environments

import escalade
from escalade.training.limits import Deadline, Limits, TimeUp
from escalade.training.progress import Counts, Progress

HALTS = "tests.environments:Halts-v0"
SMALL = {"preset": None, "population": 8, "hidden": [4], "seed": 3, "eval_every": 2, "eval_episodes": 2}
SMALL |= {"verbose": False, "backend": "gymnasium", "max_episode_steps": 10**9}


def test_generation_may_use_the_remaining_time_plus_a_margin():
    limits, late = Limits(seconds=60.0), Progress(updates=Counts(seconds=59.0))
    assert limits.seconds_for_generation(Progress()) == 66.0
    assert limits.seconds_for_generation(late) == 7.0
    assert limits.seconds_for_generation(Progress(updates=Counts(seconds=99.0))) == 6.0
    assert limits.seconds_for_last_evaluation(late, cut=False) == 11.0
    assert limits.seconds_for_last_evaluation(late, cut=True) == 6.0
    assert Limits(seconds=1.0).seconds_for_generation(Progress()) == 3.0
    assert Limits().seconds_for_generation(Progress()) is None
    assert Limits().seconds_for_last_evaluation(Progress(), cut=False) is None


def test_clock_starts_at_its_first_use(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    deadline = Deadline()
    deadline()
    deadline.set(5.0)
    now[0] = 200.0
    deadline()
    now[0] = 204.9
    deadline()
    now[0] = 205.0
    with pytest.raises(TimeUp):
        deadline()
    deadline.set(None)
    deadline()


@pytest.mark.parametrize(
    "where", [{"workers": 0}, {"workers": 2}, {"workers": 2, "engine": "threads"}], ids=["0", "2", "threads"]
)
def test_run_cut_inside_an_episode_resumes_bit_identically(where, tmp_path, monkeypatch, capsys):
    marker, run = tmp_path / "marker", tmp_path / "run"
    kwargs = {"marker": str(marker)}
    whole = escalade.train(
        "tests.environments:Halts-v0", env_kwargs=kwargs, generations=5, workers=0, **SMALL
    )

    def halt(view):
        if view.row.generation == 3:
            marker.touch()

    def left(limits, progress, cut=False):
        return 0.3 if marker.exists() else None

    monkeypatch.setattr(Limits, "seconds_for_generation", left)
    monkeypatch.setattr(Limits, "seconds_for_last_evaluation", left)
    cut = escalade.train(
        HALTS,
        env_kwargs=kwargs,
        seconds=10_000,
        run_dir=run,
        callbacks=[halt],
        **where,
        **SMALL | {"verbose": True},
    )
    said = capsys.readouterr().out
    assert "time limit (`seconds=10000`) reached in the middle of generation 4; it will be repeated" in said
    assert "time limit reached during the final evaluation" in said
    assert (cut.summary["stop_reason"], cut.summary["generations"]) == ("seconds", 3)
    assert cut.summary["eval_return_mean"] is not None  # from generation 3
    spent = cut.summary["seconds"]
    marker.unlink()
    resumed = escalade.resume(run, seconds=None, generations=5, verbose=False, **where)
    assert final_digest(run) == whole.summary["params_sha256"]
    assert resumed.summary["eval_return_mean"] == whole.summary["eval_return_mean"]
    assert resumed.summary["seconds"] > spent  # the time of the discarded generation counts


def test_evolve_accepts_seconds_as_its_only_budget():
    module = torch.nn.Linear(2, 1)
    done = escalade.evolve(
        module,
        lambda m: float(m.bias.sum()),
        population=4,
        seconds=10_000,
        callbacks=[lambda view: view.row.generation == 101],  # beyond the default of 100
    )
    assert (done.stop_reason, done.generations) == ("callback", 101)


def test_time_limit_stops_evolve_between_calls_of_fitness(monkeypatch):
    calls = []

    def fitness(module):
        calls.append(None)
        return 0.0

    def left(limits, progress, cut=False):
        return 0.0 if progress.generation == 2 else None

    monkeypatch.setattr(Limits, "seconds_for_generation", left)
    done = escalade.evolve(torch.nn.Linear(2, 1), fitness, population=4, seconds=10_000, eval_every=0)
    assert (done.stop_reason, done.generations) == ("seconds", 2)
    assert len(calls) == 10  # two generations, one call before the next time check, the last evaluation
