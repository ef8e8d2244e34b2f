"""Runs that search for novelty: bit-identical results, the archive in checkpoints, columns, and evolve."""

import math
from functools import partial

import numpy as np
import pytest
import torch

import escalade
from escalade import InputError
from escalade.cli.main import main
from escalade.perturbation import Stream, seeds
from escalade.recorders import read_progress
from escalade.storage.tensors import read
from escalade.strategies import RMES

ENV = "tests.environments:Succeeds-v0"
SMALL = {"preset": None, "population": 8, "hidden": [4], "eval_every": 2, "eval_episodes": 3, "seed": 3}
NOVEL = {"behavior": "info:where,is_success", "novelty": "nsra:k=3,weight=0.5,patience=1,step=0.25"}
COLUMNS = ("novelty_mean", "center_novelty", "fitness_weight")


def trained(folder, env=ENV, **options):
    chosen = SMALL | NOVEL | {"generations": 6, "workers": 0, "strategy": "openai-es"} | options
    return escalade.train(env, run_dir=folder, verbose=False, **chosen)


def saved(run):
    tensors = read(sorted(run.folder.path.glob("checkpoints/generation-*.safetensors"))[-1]).tensors
    return {name: tensors[name] for name in ("novelty.archive", "novelty.course", "strategy.center")}


def same(one, two):
    for name, part in saved(one).items():
        np.testing.assert_array_equal(part, saved(two)[name])
    columns = [read_progress(run.folder.progress) for run in (one, two)]
    for name in (*COLUMNS, "return_mean", "eval_steps", "unperturbed_rank"):
        assert str(columns[0][name]) == str(columns[1][name])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("novelty") / "whole")


def test_archive_holds_the_center_of_every_generation_and_columns_record_novelty(whole):
    archive = saved(whole)["novelty.archive"]
    assert archive.shape == (6, 2)
    assert archive.dtype == np.float32
    columns = read_progress(whole.folder.progress)
    assert math.isnan(columns["center_novelty"][0])
    assert columns["center_novelty"][1] == pytest.approx(math.dist(*archive[:2].tolist()))
    assert all(mean > 0 for mean in columns["novelty_mean"])
    assert columns["fitness_weight"][0] == 0.5
    assert set(columns["fitness_weight"]) > {0.5}
    assert (
        whole.summary["eval_episodes_total"] == 3 * 3 + 3 + 3
    )  # the evaluations, the last one, and three for behaviors only


@pytest.mark.parametrize(("workers", "engine"), [(1, "local"), (2, "local"), (2, "threads")])
def test_novelty_run_is_bit_identical_in_any_worker(workers, engine, whole, tmp_path):
    same(trained(tmp_path / "run", workers=workers, engine=engine), whole)


def test_novelty_run_is_bit_identical_after_a_resume_and_with_other_evaluations(whole, tmp_path):
    trained(tmp_path / "parts", generations=3)
    resumed = escalade.resume(tmp_path / "parts", generations=6, verbose=False)
    same(resumed, whole)
    often = trained(tmp_path / "often", eval_every=1, eval_episodes=5)
    for name, part in saved(whole).items():
        np.testing.assert_array_equal(part, saved(often)[name])


def test_invalid_novelty_options_fail_with_one_line(tmp_path, capsys):
    flags = f"--preset none --population 4 --generations 1 --workers 0 --run-dir {tmp_path / 'run'}"
    for more, message in (
        ("--novelty ns", "--novelty needs --behavior"),
        ("--novelty nsx --behavior ram", "--novelty nsx must be ns, nsr or nsra"),
        (
            "--novelty ns --behavior info:where --info-keys novelty",
            "--info-keys novelty: a column has that name already",
        ),
        (
            "--novelty ns --behavior info:wher",
            "--behavior wher: no episode's last info has a number with this key",
        ),
        ("--novelty nsr --behavior info:where --strategy rm-es", "RMES compares a generation's fitness"),
    ):
        assert main(["train", ENV, *flags.split(), *more.split()]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def diverging(folder, episode, **options):
    """A run whose first generation diverges in this episode of each member, but not of the center."""
    every = int(seeds(SMALL["seed"], Stream.EPISODE, 0, 0, episode))
    options |= {"episode_seeds": "generation", "behavior": "observation:0,1"}
    options["env_kwargs"] = {"every": every} | options.get("env_kwargs", {})
    return trained(folder, env="tests.environments:Diverges-v0", **options)


def test_generation_without_usable_fitness_leaves_the_center_even_if_returns_are_usable(tmp_path):
    options = {"env_kwargs": {"value": 1e35}, "episodes_per_member": 2, "generations": 2}
    with pytest.warns(RuntimeWarning, match="and 7 more"):
        ran = diverging(tmp_path / "run", 1, **options)
    assert [row.update_ratio > 0 for row in ran.history] == [False, True]
    assert len(saved(ran)["novelty.archive"]) == 2


# evolve


def point(module):
    return -float(module.weight.square().sum()), module.weight.flatten()[:2]


def points(members):
    weights = members.parameters["weight"].flatten(1)
    return -weights.square().sum(1), weights[:, :2]


EVOLVE = {"population": 8, "generations": 4, "sigma": 0.1, "lr": 0.05, "seed": 4}


def evolved(fitness=point, **options):
    seen, module = [], torch.nn.Linear(3, 1, bias=False)
    torch.nn.init.constant_(module.weight, 0.05)
    made = escalade.evolve(
        module, fitness, callbacks=[lambda view: seen.append(view.behaviors)], **EVOLVE | options
    )
    return made, seen


def test_fitness_function_may_also_return_a_behavior():
    plain, nothing = evolved(lambda module: point(module)[0])
    both, seen = evolved()
    assert nothing == [None] * 4
    assert [part.shape for part in seen] == [(8, 2)] * 4
    np.testing.assert_array_equal(plain.center, both.center)
    batched, again = evolved(points, batched=True, batch_size=3)
    np.testing.assert_allclose(again, seen, rtol=1e-6)
    np.testing.assert_allclose(batched.center, both.center, rtol=1e-4, atol=1e-6)


def test_evolve_searches_for_novelty_in_both_directions_and_resumes(tmp_path):
    """At the optimum, fitness pulls back and novelty pushes away."""
    fit, _ = evolved(generations=20)
    novel, _ = evolved(generations=20, novelty="ns:k=2")
    assert np.linalg.norm(novel.center) > 2 * np.linalg.norm(fit.center)
    down, _ = evolved(
        lambda module: (-point(module)[0], point(module)[1]),
        direction="minimize",
        generations=20,
        novelty="ns:k=2",
    )
    np.testing.assert_array_equal(down.center, novel.center)
    options = {"novelty": "nsra:k=2,patience=2", "run_dir": tmp_path / "run", "eval_every": 3}
    whole, _ = evolved(novelty="nsra:k=2,patience=2", eval_every=3)
    evolved(generations=2, **options)
    again, _ = evolved(resume=True, workers=1, **options)
    np.testing.assert_array_equal(again.center, whole.center)
    assert [row.info for row in again.history] == [row.info for row in whole.history]
    with pytest.raises(InputError, match="whose novelty is nsra:k=2,patience=2, not ns"):
        evolved(resume=True, **options | {"novelty": "ns"})


def test_evolve_rejects_novelty_without_behaviors():
    with pytest.raises(InputError, match=r"let fitness return \(fitness, behavior\)"):
        evolved(lambda module: 1.0, novelty="ns")
    with pytest.raises(InputError, match="`novelty` far must be ns"):
        evolved(novelty="far")
    with pytest.raises(escalade.EnvironmentFailure, match=r"behavior that fitness returns .* \(member 0"):
        evolved(lambda module: (1.0, "far"))
    with pytest.raises(InputError, match="behaviors for some members only"):
        evolved(lambda module, seed: (1.0, [1.0]) if seed % 2 else 1.0)
    with pytest.raises(InputError, match="behaviors of 1 and 2 numbers"):
        evolved(lambda module, seed: (1.0, [1.0] * (1 + seed % 2)))


def test_failed_call_has_no_behavior():
    def fitness(module, seed):
        if seed % 16 == 0:
            raise ValueError("too far")
        return point(module)

    with pytest.warns(RuntimeWarning, match="such members count as the worst"):
        made, seen = evolved(fitness, catch=True, novelty="nsr", population=60, generations=2)
    assert 0 < np.isnan(np.concatenate(seen)).all(axis=1).sum() < 12
    assert np.isfinite(made.center).all()


class Patient(RMES):
    """A user-defined strategy."""


def behind_a_function(x0, **options):
    return RMES(x0, **options)


@pytest.mark.parametrize(
    "strategy", ["rm-es", "les", "deep-ga", RMES, Patient, partial(RMES, paths=3), behind_a_function]
)
def test_evolve_rejects_strategies_that_compare_generations_with_novelty(strategy, tmp_path):
    """It would receive ranks within a generation, and the best ranks are the same in every generation."""
    options = {"strategy": strategy, "lr": None, "run_dir": tmp_path / "run"}
    with pytest.raises(
        InputError, match=r"^\w+ compares a generation's fitness .*; use a different strategy$"
    ):
        evolved(novelty="nsr", **options)
    assert not (tmp_path / "run").exists()
    evolved(**options, generations=2)  # without novelty, behaviors are only recorded
