"""Simulators that fail occasionally: their episodes count as the worst, or end the run."""

import math
import re

import numpy as np
import pytest
import torch
from tests.environments import Walk
from tests.recording import Recording

import escalade
from escalade import EnvironmentFailure, InputError
from escalade.cli import main as cli
from escalade.perturbation import Stream, seeds
from escalade.storage.tensors import read

TRAIN = {"preset": None, "population": 40, "hidden": [4], "generations": 3, "eval_episodes": 20, "seed": 2}
TRAIN |= {"normalize_observations": True, "verbose": False}


def train(folder, *, every=29, when="step", **options):
    options = {**TRAIN, "env_kwargs": {"when": when, "every": every}, **options}
    return escalade.train("tests.environments:Raises-v0", run_dir=folder, **options)


@pytest.mark.filterwarnings("ignore:Raises.close")  # of the probe's environment, which has raised already
@pytest.mark.parametrize("when", ["step", "reset"])
def test_failed_episodes_count_as_the_worst_on_every_engine(when, tmp_path):
    with pytest.raises(EnvironmentFailure, match="the arm fell off"):
        train(tmp_path / "stops", when=when, workers=0)
    message = r"member \d+ \(.*\) raised RuntimeError: the arm fell off \(line \d+ of environments.py\)"
    with pytest.warns(RuntimeWarning, match=message) as warned:
        runs = [train(tmp_path / str(n), when=when, workers=n, on_error="worst") for n in (0, 2)]
    messages = [str(warning.message) for warning in warned if "generation" in str(warning.message)]
    assert messages == messages[:1] * 2  # on every engine
    counts = [row.nonfinite for row in runs[0].history]
    assert sum(counts) > 0
    assert max(counts) <= 4
    assert counts == [row.nonfinite for row in runs[1].history]
    assert runs[0].summary["params_sha256"] == runs[1].summary["params_sha256"]
    assert math.isfinite(runs[0].summary["eval_return_mean"])
    found = escalade.evaluate(runs[0], episodes=3, seed=1, workers=0)  # an evaluation has no generation
    assert np.isfinite(found.returns).all()


def test_more_than_a_tenth_of_failures_ends_the_run(tmp_path):
    message = (
        r"^\d+ of 40 episodes of generation 1 failed or had no usable return "
        r"\(the first: member \d+ \(episode seed \d+\) raised RuntimeError: the arm fell off \(.*\)\); "
        r"`on_error=worst` tolerates at most a tenth"
    )
    with pytest.raises(EnvironmentFailure, match=message):
        train(tmp_path / "run", every=3, workers=0, on_error="worst")


def test_an_evaluation_with_on_error_worst_counts_and_reports_failed_episodes(tmp_path, capsys):
    run = train(tmp_path / "run", every=10**9, generations=1, workers=0, on_error="worst")
    found = escalade.evaluate(run, episodes=40, seed=1, workers=0, env_kwargs={"every": 14})
    assert 0 < found.failed <= 4
    assert np.isfinite(found.returns).all()
    assert (found.returns == found.returns.min()).sum() > found.failed
    words = ["eval", str(run.folder.path), "--episodes", "40", "--seed", "1", "--workers", "0"]
    assert cli.main([*words, "--env-kwargs", '{"every": 14}']) == 0
    assert found.raised.startswith("RuntimeError: the arm fell off (line ")
    message = f", {found.failed} failed (counted as the worst of the others) (one raised {found.raised})"
    assert message in capsys.readouterr().out
    with pytest.raises(EnvironmentFailure, match="the arm fell off"):  # the only note
        escalade.evaluate(run, episodes=3, workers=0, env_kwargs={"every": 1})
    message = (
        r"^\d+ of 40 episodes failed .* \(the first: it raised RuntimeError: .* tolerates at most a tenth"
    )
    with pytest.raises(EnvironmentFailure, match=message):
        escalade.evaluate(run, episodes=40, seed=1, workers=0, env_kwargs={"every": 5})


class Frail(Walk):
    """Fails in ``of`` percent of the evaluation episodes, never in those of members."""

    members = frozenset(int(seed) for g in range(9) for seed in seeds(2, Stream.EPISODE, g, np.arange(40), 0))

    def __init__(self, of: int = 0) -> None:
        super().__init__("truncated", 8)
        self.of = of

    def reset(self, *, seed=None, options=None):
        if seed not in self.members and seed % 100 < self.of:
            raise RuntimeError("the arm fell off")
        return super().reset(seed=seed)


def frail(folder, of, **options):
    options = {**TRAIN, "env_kwargs": {"of": of}, "on_error": "worst", "workers": 0, **options}
    return escalade.train(Frail, run_dir=folder, **options)


@pytest.mark.parametrize("target", [None, -1000.0])
def test_more_than_a_tenth_of_failures_in_evaluations_ends_the_run(target, tmp_path):
    message = r"\d+ of 20 episodes of an evaluation after generation 0 failed or .*it raised RuntimeError"
    with pytest.raises(EnvironmentFailure, match=message):
        frail(tmp_path / "run", 50, target_return=target)


def test_a_solved_run_reports_failed_confirmation_episodes(tmp_path):
    recorder = Recording()
    run = frail(tmp_path / "run", 4, target_return=-1000.0, eval_episodes=1, recorders=[recorder])
    assert run.summary["solved"]
    failed = run.summary["eval_failed"]
    assert 0 < failed <= 10
    assert run.summary["eval_failed_total"] >= failed
    assert run.summary["failed"] == 0
    assert f"{failed} of the 100 episodes that confirm the target failed" in "".join(recorder.notes)


def flaky(share, kind=RuntimeError):
    """Fitness that raises for about a fraction of its calls: the same ones on every engine."""

    def fitness(module, seed):
        if seed % 1000 < 1000 * share:
            raise kind("the arm fell off")
        return -float((module.weight - 0.5).abs().sum())

    return fitness


def evolve(fitness, **options):
    torch.manual_seed(0)
    options = {"population": 40, "generations": 4, "lr": 0.05, **options}
    return escalade.evolve(torch.nn.Linear(3, 1), fitness, **options)


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit])
def test_evolve_can_count_calls_that_raise_as_the_worst(kind):
    with pytest.raises(EnvironmentFailure, match=rf"fitness raised {kind.__name__}: the arm fell off"):
        evolve(flaky(0.04, kind))
    message = rf"member \d+ raised {kind.__name__}: the arm fell off \(line \d+ of test_on_error.py\)"
    with pytest.warns(RuntimeWarning, match=message):
        one, two = (evolve(flaky(0.04, kind), catch=True, workers=workers) for workers in (0, 2))
    assert sum(row.nonfinite for row in one.history) > 0
    assert one.center.tobytes() == two.center.tobytes()
    message = r"of 40 calls of fitness .* raised RuntimeError: the arm .*`catch` tolerates at most a tenth"
    with pytest.raises(EnvironmentFailure, match=message):
        evolve(flaky(0.3), catch=True)


def test_evolve_replaces_a_worker_that_hangs():
    def fitness(module, seed):
        while True:
            pass

    message = r"^member \d, generation 1 did not respond for 0.5 s, twice"
    with pytest.raises(EnvironmentFailure, match=message):
        evolve(fitness, workers=1, population=4, step_timeout=0.5)
    with pytest.raises(InputError, match=re.escape("`step_timeout` needs worker processes")):
        evolve(fitness, step_timeout=1.0)
    with pytest.raises(InputError, match="step_timeout -1 must be above 0"):
        evolve(fitness, workers=1, step_timeout=-1)


def only_whole(trajectory):
    assert np.isfinite(trajectory.rewards).all()
    return trajectory.observations[-1][:2]


@pytest.mark.filterwarnings("ignore:Raises.close")
@pytest.mark.parametrize("behavior", ["observation:0,1", only_whole])
def test_a_failed_episode_has_no_behavior(behavior, tmp_path):
    seen = []

    def count(state):
        seen.append((state.row.nonfinite, np.isnan(state.behaviors).all(axis=1).sum()))

    options = {"behavior": behavior, "novelty": "nsr", "strategy": "openai-es", "on_error": "worst"}
    with pytest.warns(RuntimeWarning, match="raised RuntimeError"):
        ran = train(tmp_path / "run", workers=0, callbacks=[count], **options)
    assert sum(failed for failed, _ in seen) > 0
    assert all(failed == without for failed, without in seen)
    tensors = read(max(ran.folder.checkpoints.folder.glob("*.safetensors"))).tensors
    assert np.isfinite(tensors["novelty.archive"]).all()
