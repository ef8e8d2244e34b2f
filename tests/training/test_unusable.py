"""Returns beyond 1e30 come from diverged simulators: they are never the best and never meet a target."""

import numpy as np
import pytest
import torch

import escalade
from escalade.recorders import read_progress

TINY = {"preset": None, "population": 8, "hidden": [4], "workers": 0, "seed": 2, "verbose": False}
TINY |= {"eval_every": 1, "generations": 3, "strategy": "openai-es"}


def diverging(folder, every, **options):
    """A run in which every step of episodes whose seed is a multiple of ``every`` returns 1e35."""
    env = {"env": "tests.environments:Diverges-v0", "env_kwargs": {"every": every, "value": 1e35}}
    return escalade.train(run_dir=folder, **TINY | env | options)


def test_diverged_evaluations_do_not_meet_a_target(tmp_path):
    ran = diverging(tmp_path / "run", 5, target_return=1e3, eval_episodes=10)
    assert max(read_progress(ran.folder.progress)["eval_return_mean"]) > 1e30
    assert not ran.summary["solved"]


def evolved(values, **options):
    """A run with calls that return ``values``: eight members of one generation, then the center twice."""
    given = iter(values)
    module = torch.nn.Linear(2, 1)
    return escalade.evolve(module, lambda module: next(given), population=8, generations=1, **options)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("huge", [1e35, -1e35, np.nan, np.inf])
def test_center_with_huge_or_nonfinite_fitness_is_never_the_best(huge, direction):
    found = evolved([*range(8), huge, huge], direction=direction)
    assert found.best_return == found.summary["best_return"] == (7 if direction == "maximize" else 0)
    assert not np.array_equal(found.best, found.center)


@pytest.mark.filterwarnings("ignore:.*count as the worst:RuntimeWarning")
@pytest.mark.parametrize("huge", [np.nan, 1e35])
def test_members_without_a_usable_number_rank_below_the_center(huge, capsys):
    assert evolved([huge, *range(1, 8), 3.5, 3.5]).history["unperturbed_rank"] == [5]
    assert evolved([huge, *range(1, 8), 0.5, 0.5]).history["unperturbed_rank"] == [8]
    evolved([huge, *[2.0] * 7, 3.5, 3.5], verbose=True)
    assert "all members have the same fitness" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:generation 1.*returned:RuntimeWarning")
def test_normalizer_ignores_observations_of_diverged_episodes(tmp_path):
    run = diverging(tmp_path / "run", 3, normalize_observations=True)
    assert sum(read_progress(run.folder.progress)["nonfinite"]) > 0
    assert run.policy.observation_count > 0
    assert (run.policy.observation_inverse_std > 1e-3).all()
    assert (run.policy.observation_mean.abs() < 1e3).all()
