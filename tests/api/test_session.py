"""Training from end to end: every supported space, the files of a run, evaluation, and the library's API."""

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from tests.commands import final_digest
from tests.environments import ACTIONS, OBSERVATIONS, PARTS
from tests.own_code import Features
from tests.recording import Recording
from torch import nn

import escalade
from escalade import InputError
from escalade.cli import main as cli
from escalade.config import presets
from escalade.config.conversion import read_toml
from escalade.config.files import new_folder, read_config
from escalade.config.options import Config
from escalade.policies.networks import to_vector
from escalade.recorders import COLUMNS
from escalade.strategies.registry import STRATEGIES
from escalade.training.saved import SavedPolicy

TINY = {"preset": None, "population": 6, "hidden": [4], "workers": 0, "generations": 2, "eval_every": 1}
OWN = {name: value for name, value in TINY.items() if name != "hidden"}
"""For a network of one's own."""
TINY |= {"eval_episodes": 2, "verbose": False}
NO_POLICY = ("film", "large image", "nested large", "text", "sequence")
SPACES = [(name, "discrete", {}) for name in OBSERVATIONS | PARTS if name not in NO_POLICY]
SPACES += [("box", name, {}) for name in ACTIONS if name not in ("text", "dict", "discrete")]
SPACES += [("box", name, {"action_map": "tanh"}) for name in ("platform", "robot")]
SPACES += [("box", "robot", {"head": "uniform:3"}), ("box", "agents", {})]
SPACES += [("dict", "box", {"action_map": how}) for how in ("rescale", "tanh")]
SPACES += [("tuple", "box", {"action_map": "rescale"}), ("box32", "box", {"action_map": "tanh"})]
SPACES += [("box", "box", {"head": "uniform:3"}), ("box", "half", {"head": "custom:-1,0.5,2"})]
SPACES += [("matrix", "box32", {"action_noise": 5.0})]


@pytest.mark.parametrize(("observation", "action", "options"), SPACES, ids=str)
def test_every_space_trains_and_its_policy_acts(observation, action, options, tmp_path):
    kwargs = {"observation": observation, "action": action}
    run = escalade.train(
        "tests.environments:Tiny-v0", env_kwargs=kwargs, run_dir=str(tmp_path / "r"), **TINY, **options
    )
    assert run.summary["generations"] == 2
    assert run.summary["env_steps"] >= 12
    policy = escalade.load(tmp_path / "r")
    env = gymnasium.make("tests.environments:Tiny-v0", disable_env_checker=True, **kwargs)
    seen, _ = env.reset(seed=4)
    ended = False
    while not ended:
        chosen = policy.act(seen)
        assert env.action_space.contains(chosen)
        np.testing.assert_equal(chosen, run.policy.act(seen))
        seen, _, ended, _, _ = env.step(chosen)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("session") / "run"
    return escalade.train("CartPole-v1", run_dir=str(folder), seed=5, head="plain", snapshot_every=1, **TINY)


def test_a_run_folder_contains_readable_files(run):
    names = {path.name for path in run.folder.path.iterdir()}
    assert names == {
        "config.toml",
        "progress.csv",
        "population.csv",
        "summary.json",
        "curve.png",
        "policy.safetensors",
        "best.safetensors",
        "checkpoints",
        ".lock",
    }
    summary = json.loads(run.folder.summary.read_text())
    assert summary == run.summary
    assert set(summary) >= {
        *("env", "strategy", "seed", "generations", "episodes", "env_steps", "seconds", "steps_per_second"),
        *("eval_return_mean", "eval_return_std", "eval_episodes", "target_return", "solved", "stop_reason"),
        "params_sha256",
    }
    assert (summary["episodes"], summary["stop_reason"], summary["solved"]) == (12, "generations", False)
    with run.folder.progress.open() as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row[0] for row in rows[1:]] == ["1", "2"]
    assert read_config(run.folder).backend in ("gymnasium", "envpool")


def test_evaluation_is_reproducible_for_a_seed(run):
    found = escalade.evaluate(run.folder.path, episodes=4, seed=9, workers=0, backend="gymnasium")
    again = escalade.evaluate(run.folder.path, episodes=4, seed=9, workers=1, backend="gymnasium")
    other = escalade.evaluate(run.folder.path, episodes=4, seed=10, workers=0, backend="gymnasium")
    np.testing.assert_array_equal(found.returns, again.returns)
    assert found.returns.tolist() != other.returns.tolist() or found.mean == 500
    assert (found.mean, found.std) == (found.returns.mean(), found.returns.std())
    np.testing.assert_array_equal(found.lengths, found.returns)


def test_any_checkpoint_can_be_evaluated(run, capsys):
    for checkpoint in ("latest", "best", "0", "1", "2"):
        arguments = ["eval", str(run.folder.path), "--episodes", "3", "--workers", "0", "--json"]
        assert cli.main([*arguments, "--checkpoint", checkpoint]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["episodes"], facts["checkpoint"]) == (3, checkpoint)
        assert facts["return_min"] <= facts["return_mean"] <= facts["return_max"]


def test_a_run_stops_after_its_env_steps_and_resumes_with_more(tmp_path):
    options = TINY | {"generations": None}
    run = escalade.train("CartPole-v1", env_steps=300, run_dir=str(tmp_path / "r"), **options)
    assert run.summary["stop_reason"] == "env_steps"
    assert run.summary["env_steps"] >= 300
    again = escalade.resume(tmp_path / "r", env_steps=600, verbose=False)
    assert again.summary["env_steps"] >= 600


def test_resume_rejects_changes_other_than_budgets(run):
    for name, value in [("sigma", 0.3), ("seed", 9), ("env", "Acrobot-v1"), ("hidden", (3,))]:
        with pytest.raises(InputError, match=f"`{name}` cannot change"):
            escalade.resume(run.folder.path, verbose=False, **{name: value})


def test_a_users_module_trains_through_torch_func(tmp_path):
    def module():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.SiLU(), nn.Linear(6, 2))

    options = OWN | {"sigma": 0.5}
    run = escalade.train("CartPole-v1", network=module(), run_dir=str(tmp_path / "r"), **options)
    other = escalade.train(
        "CartPole-v1", network=module(), run_dir=str(tmp_path / "w"), **(options | {"workers": 2})
    )
    assert run.summary["params_sha256"] == other.summary["params_sha256"]
    assert escalade.load(tmp_path / "r", network=module()).act(np.zeros(4)) in (0, 1)
    assert not torch.equal(next(run.policy.network.parameters()), next(module().parameters()))
    resumed = escalade.resume(tmp_path / "r", network=module(), generations=3, verbose=False)
    assert resumed.summary["generations"] == 3


def test_recorders_and_callbacks_receive_every_generation(tmp_path):
    recorder, views = Recording(), []
    run = escalade.train(
        "CartPole-v1",
        recorders=[recorder],
        callbacks=[lambda view: views.append(view) or len(views) == 3],
        run_dir=str(tmp_path / "r"),
        **(TINY | {"generations": 9}),
    )
    assert ([row.generation for row in recorder.rows], recorder.closed) == ([1, 2, 3], 1)
    assert run.summary["generations"] == 3
    with pytest.raises(ValueError, match="read-only"):
        views[0].center[0] = 1.0


def test_a_million_parameters_do_not_allocate_a_dense_population():
    import tracemalloc

    from escalade.perturbation import GaussianPopulation, NoiseTable

    dimension, size = 500_000, 400
    table = NoiseTable(0, 2 * dimension)
    center, out = np.zeros(dimension, np.float32), np.empty(dimension, np.float32)
    population = GaussianPopulation(center[:10].copy(), 0.1, table, 0, 0, 2)
    population.draws.weighted_sum(np.ones(population.distinct))  # imports torch
    tracemalloc.start()
    population = GaussianPopulation(center, 0.1, table, 0, 0, size)
    for member in range(0, size, 7):
        population.write(member, out)
    total = population.draws.weighted_sum(np.ones(population.distinct))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.isfinite(total).all()
    assert peak < 4 * dimension + 100_000  # the sum itself, and almost nothing else


def test_frozen_parts_of_a_network_are_part_of_the_run(tmp_path):
    options = TINY | {"policy": "tests.own_code:Features", "hidden": None, "seed": 3}
    whole = escalade.train("CartPole-v1", run_dir=str(tmp_path / "w"), **options)
    parts = escalade.train("CartPole-v1", run_dir=str(tmp_path / "p"), **options | {"generations": 1})
    torch.manual_seed(99)  # must not matter
    resumed = escalade.resume(tmp_path / "p", generations=2, verbose=False)
    assert resumed.summary["params_sha256"] == whole.summary["params_sha256"]
    seen = torch.rand(5, 4)
    for run in (parts, resumed):
        assert torch.equal(run.policy.network.features(seen), whole.policy.network.features(seen))
    first, again = (escalade.evaluate(tmp_path / "w", episodes=5, workers=0).returns for _ in range(2))
    np.testing.assert_array_equal(first, again)
    # The user may create the module again with different values; those of the training are used.
    mine = escalade.train("CartPole-v1", network=Features(4, 2), run_dir=str(tmp_path / "m"), **OWN)
    results = [
        escalade.evaluate(tmp_path / "m", episodes=5, workers=0, network=Features(4, 2), checkpoint=which)
        for which in ("latest", 2)
    ]
    np.testing.assert_array_equal(results[0].returns, results[1].returns)
    assert mine.summary["generations"] == 2


@pytest.mark.parametrize("options", [{"hidden": (3,)}, {"policy": "gru"}, {"init": "zeros"}, {"bias": False}])
def test_policy_options_are_refused_together_with_a_network(options, tmp_path):
    with pytest.raises(
        InputError, match=f"`{next(iter(options))}` has no effect with a `network` of your own"
    ):
        escalade.train("CartPole-v1", network=nn.Linear(4, 2), run_dir=str(tmp_path / "r"), **OWN | options)


def test_a_custom_network_replaces_the_presets_policy_and_its_config_reproduces_it(tmp_path):
    def begun():
        torch.manual_seed(3)
        return nn.Linear(4, 2)

    options = {"generations": 2, "eval_every": 2, "eval_episodes": 1, "workers": 0, "verbose": False}
    run = escalade.train("CartPole-v1", network=begun(), run_dir=tmp_path / "r", **options)
    config = read_toml(run.folder.config)
    assert (config["policy"], config["hidden"], config["init"]) == ("mlp", None, "normc")
    assert (config["strategy"], str(config["population"])) == ("ars", "32")  # the preset's
    again = config | {"run_dir": tmp_path / "again", "preset": None, "verbose": False}
    assert final_digest(escalade.train(network=begun(), **again).folder.path) == final_digest(run.folder.path)


def test_a_network_is_refused_if_the_run_has_a_named_policy(tmp_path):
    run = escalade.train("CartPole-v1", run_dir=str(tmp_path / "r"), **TINY)
    for use in (escalade.evaluate, escalade.resume):
        with pytest.raises(
            InputError, match="`network` has no effect, as the run's policy is mlp; remove it"
        ):
            use(run, network=nn.Linear(4, 2))


def test_an_action_map_is_refused_if_no_action_has_bounds(tmp_path):
    options = TINY | {"env_kwargs": {"action": "unbounded"}, "action_map": "tanh"}
    with pytest.raises(InputError, match="`action_map` tanh has no effect, as no action has two bounds"):
        escalade.train("tests.environments:Tiny-v0", run_dir=str(tmp_path / "r"), **options)


def test_choosing_a_different_strategy_drops_the_presets_tuned_values(tmp_path, capsys):
    for env in presets.names():
        for strategy in STRATEGIES:
            chosen = presets.options(env, "auto", {"strategy": strategy})
            Config(**({"env": env} | chosen | {"strategy": strategy}))
    options = {"strategy": "cma-es", "generations": 1, "workers": 0, "verbose": False, "target_return": None}
    run = escalade.train("CartPole-v1", population=6, run_dir=str(tmp_path / "r"), **options)
    assert run.summary["strategy"] == "cma-es"
    assert capsys.readouterr().out == ""
    escalade.train("CartPole-v1", population=6, run_dir=str(tmp_path / "s"), **options | {"verbose": True})
    assert (
        "preset CartPole-v1 was tuned for ars; with cma-es, its sigma, lr, top_directions"
        in capsys.readouterr().out
    )


def test_two_runs_started_together_get_separate_folders():
    config = Config(env="CartPole-v1")
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: new_folder(config).path, range(24)))
    assert len(set(folders)) == 24


@pytest.fixture(scope="module")
def passed_its_best(tmp_path_factory):
    """A run whose best evaluation is not its last, so that the parameters of the two policies differ."""
    learns = {"generations": 6, "population": 8, "lr": 0.5, "sigma": 0.3, "seed": 3, "eval_every": 2}
    folder = tmp_path_factory.mktemp("which") / "r"
    run = escalade.train("CartPole-v1", run_dir=str(folder), snapshot_every=2, **TINY | learns)
    assert run.summary["best_generation"] not in (None, 6)
    return run


def film(run, path, **options):
    return escalade.render(run, path, max_steps=30, **options), path.read_bytes()


def test_evaluate_render_load_and_start_from_use_the_latest_policy_by_default(passed_its_best, tmp_path):
    run = passed_its_best
    evaluation = escalade.evaluate(run, episodes=5, workers=0)
    assert evaluation.params_sha256 == run.summary["params_sha256"]
    assert evaluation.generation == run.summary["generations"]
    assert film(run, tmp_path / "a.gif") == film(run, tmp_path / "b.gif", checkpoint="latest")
    seen = np.random.default_rng(0).normal(size=(9, 4))
    latest, best = (escalade.load(file).act(seen) for file in (run.folder.policy, run.folder.best))
    np.testing.assert_array_equal(escalade.load(run).act(seen), latest)
    assert (latest != best).any()
    options = TINY | {"generations": 1, "start_from": str(run.folder.path)}
    begun = escalade.train("CartPole-v1", run_dir=str(tmp_path / "n"), **options)
    first = SavedPolicy.find(begun.folder, "0", None).center
    np.testing.assert_array_equal(first, to_vector(run.policy.network))


def test_best_is_the_policy_of_its_file_even_if_the_last_evaluation_was_better(passed_its_best):
    run = passed_its_best
    evaluation = escalade.evaluate(run, episodes=5, workers=0, checkpoint="best")
    assert evaluation.generation == run.summary["best_generation"]
    center = to_vector(escalade.load(run.folder.best).network)
    found = SavedPolicy.find(run.folder, "best", None)
    np.testing.assert_array_equal(found.center, center)
    assert evaluation.params_sha256 == found.sha256 != run.summary["params_sha256"]


def test_a_damaged_latest_checkpoint_is_not_replaced_by_an_earlier_one_silently(tmp_path):
    run = escalade.train("CartPole-v1", run_dir=str(tmp_path / "r"), **TINY)
    (before, last) = sorted(run.folder.checkpoints.folder.iterdir())[-2:]
    last.write_bytes(last.read_bytes()[:100])
    number = int(before.stem.rpartition("-")[2])
    for use in (escalade.evaluate, escalade.export):
        with pytest.raises(InputError, match=rf"damaged.*; use `checkpoint` {number}, which is intact"):
            use(run)
    assert escalade.evaluate(run, checkpoint=number, episodes=2).generation == number


FAILS = {"env": "tests.environments:Raises-v0", "workers": 0, "preset": None, "verbose": False}


def test_a_failed_start_of_train_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for workers in (0, 1):
        with pytest.raises(escalade.EnvironmentFailure, match="the arm fell off"):
            escalade.train(**FAILS | {"workers": workers})  # into runs/...
        with pytest.raises(escalade.EnvironmentFailure):
            escalade.train(**FAILS | {"workers": workers}, run_dir="a/b/c")
    left = {path.name for path in tmp_path.rglob("*")}  # folders that may contain other runs
    assert left == {"a", "b", "runs", "Raises-v0"}


def test_a_failed_start_of_evolve_leaves_no_folder(tmp_path):
    def fitness(module):
        raise RuntimeError("no")

    with pytest.raises(escalade.EnvironmentFailure):
        escalade.evolve(torch.nn.Linear(1, 1), fitness, run_dir=tmp_path / "a" / "b")
    assert not (tmp_path / "a" / "b").exists()


def test_a_refused_option_of_resume_is_not_written_to_the_config(tmp_path):
    run = escalade.train("CartPole-v1", run_dir=str(tmp_path / "r"), **TINY)
    folder = run.folder
    # Like a run that was killed before its first checkpoint.
    for generation in folder.checkpoints.generations():
        folder.checkpoints.path(generation).unlink()
    for file in (folder.progress, folder.policy, folder.summary):
        file.unlink(missing_ok=True)
    assert folder.untouched()
    before = folder.config.read_bytes()
    with pytest.raises(InputError, match="recorder"):
        escalade.resume(folder.path, recorder=("nowhere:Recorder",), verbose=False)
    assert folder.config.read_bytes() == before
    escalade.resume(folder.path, generations=1, verbose=False)
    assert read_config(folder).generations == 1


def test_a_folder_that_contains_runs_is_refused_as_run_dir(run):
    above = run.folder.path.parent
    with pytest.raises(InputError, match=r"`run_dir` .* contains 1 run; choose a new folder, such as .*new"):
        escalade.train("CartPole-v1", run_dir=above, **TINY)
    assert not (above / "config.toml").exists()


@pytest.mark.parametrize("checkpoint", ["latest", "best", 1])
def test_export_does_not_create_the_environment(checkpoint, run, monkeypatch, tmp_path):
    expected = escalade.export(run, "torchscript", checkpoint=checkpoint, output=tmp_path / "with.pt")

    def missing(*arguments, **keywords):
        raise InputError("its package is not installed")

    monkeypatch.setattr("escalade.wings.publish.export.find_environment", missing)
    monkeypatch.setattr("escalade.training.saved.find_environment", missing)
    made = escalade.export(run, "torchscript", checkpoint=checkpoint, output=tmp_path / "without.pt")
    assert made.largest_difference == expected.largest_difference


def test_relative_paths_are_resolved_when_the_call_starts(monkeypatch, tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    moves = {"env": "tests.environments:Moves", "env_kwargs": {"to": str(tmp_path / "there")}, **TINY}

    def back(called):
        made = called()
        monkeypatch.chdir(tmp_path / "here")
        return made

    back(lambda: escalade.train(run_dir="first", **moves))
    back(lambda: escalade.train(run_dir=Path("second"), start_from="first", **moves))
    own = back(lambda: escalade.train(**moves))
    series = back(lambda: escalade.train(seeds=(0, 1), **moves))
    back(lambda: escalade.resume("second", generations=3, verbose=False))
    back(lambda: escalade.evaluate("second", episodes=1))
    film = back(lambda: escalade.export("second", "torchscript", output="film.torchscript.pt")).path
    assert film == tmp_path / "here" / "film.torchscript.pt"
    runs = tmp_path / "here" / "runs" / "Moves"
    assert {own.folder.path.parent, *(run.folder.path.parent.parent for run in series)} == {runs}
    assert not [*(tmp_path / "there").iterdir()]
