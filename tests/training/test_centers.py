"""Several centers: choice of the moving one, separate state, bit-identical runs, and their policies."""

import signal
from dataclasses import replace

import numpy as np
import pytest
from tests.commands import final_digest

import escalade
from escalade import InputError
from escalade.cli.main import main
from escalade.recorders import read_progress
from escalade.storage.run_folder import RunFolder
from escalade.storage.tensors import read
from escalade.strategies.novelty import Center, Novelty, NoveltyOptions
from escalade.training.policy_objective import PolicyObjective

ENV = "tests.environments:Succeeds-v0"
OPTIONS = {"preset": None, "population": 8, "hidden": [4], "eval_every": 2, "eval_episodes": 3, "seed": 3}
OPTIONS |= {"behavior": "info:where,is_success", "novelty": "nsra:k=3,centers=3", "generations": 7}

NETWORK = [f"network.{layer}.{part}" for layer in (0, 2) for part in ("weight", "bias")]


def trained(folder, **options):
    chosen = OPTIONS | {"workers": 0, "strategy": "openai-es", "verbose": False} | options
    return escalade.train(ENV, run_dir=folder, **chosen)


def saved(folder):
    path = max(RunFolder.open(folder).checkpoints.folder.glob("*.safetensors"))
    return read(path).tensors


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("centers") / "whole")


def search_with(places, numbers):
    search = Novelty(NoveltyOptions("ns:k=2"))
    for generation, (place, number) in enumerate(zip(places, numbers, strict=True)):
        search.learn(Center(0.0, np.array(place, np.float32), generation + 1, number))
    return search


def test_centers_are_chosen_in_turn_and_then_by_novelty():
    # Novelty of the last behaviors of 0, 1 and 2: mean distance to the two nearest, including their own.
    search = search_with([(9, 9), (0, 0), (1, 0), (5, 0)], [0, 0, 1, 2])
    assert [search.draw(3, generation, 7) for generation in range(3)] == [0, 1, 2]
    novelty = np.array([0.5, 0.5, 2.0])
    drawn = [search.draw(3, generation, 7) for generation in range(3, 3003)]
    assert drawn != [search.draw(3, generation, 8) for generation in range(3, 3003)]
    np.testing.assert_allclose(np.bincount(drawn) / 3000, novelty / novelty.sum(), atol=0.03)


def test_only_the_chosen_center_changes(tmp_path):
    before = trained(tmp_path / "run", generations=6)
    earlier = saved(tmp_path / "run")
    escalade.resume(before.folder, generations=7, verbose=False)
    later = saved(tmp_path / "run")
    moved = int(read_progress(before.folder.progress)["center"][-1])
    own = [f"{room}.{number}." for room in ("strategy", "normalizer") for number in range(3)]
    for prefix in own:
        parts = [name for name in later if name.startswith(prefix)]
        assert parts
        changed = {name for name in parts if not np.array_equal(earlier[name], later[name])}
        assert bool(changed) == (prefix.split(".")[1] == str(moved)), prefix
    assert len(later["novelty.archive"]) == len(earlier["novelty.archive"]) + 1
    assert later["novelty.origins"][-1].tolist() == [7, moved]


def test_centers_start_with_different_weights(whole):
    first = read(whole.folder.checkpoints.path(0)).tensors
    starts = [first[f"strategy.{number}.center"] for number in range(3)]
    assert not np.array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[1], starts[2])
    alone = escalade.train(
        ENV, **{**OPTIONS, "novelty": "nsra:k=3", "generations": 1, "workers": 0, "verbose": False}
    )
    np.testing.assert_array_equal(
        starts[0], read(alone.folder.checkpoints.path(0)).tensors["strategy.center"]
    )


@pytest.mark.parametrize(
    "strategy",
    ["openai-es", "cma-es"]
    + [pytest.param(name, marks=pytest.mark.slow("src/escalade/strategies")) for name in ("ars", "pgpe")],
)
def test_any_strategy_is_bit_identical_in_workers_and_after_a_resume(strategy, tmp_path):
    one = trained(tmp_path / "one", strategy=strategy)
    trained(tmp_path / "two", strategy=strategy, workers=2, generations=4)
    escalade.resume(tmp_path / "two", generations=7, workers=1, verbose=False)
    assert final_digest(tmp_path / "two") == final_digest(one.folder.path)
    for name, part in saved(tmp_path / "one").items():
        np.testing.assert_array_equal(part, saved(tmp_path / "two")[name], err_msg=name)
    columns = [read_progress(RunFolder.open(tmp_path / run).progress)["center"] for run in ("one", "two")]
    assert columns[0] == columns[1]
    assert columns[0][:3] == [0, 1, 2]


def test_run_policy_is_the_best_center_and_each_center_has_a_file(whole):
    each = [escalade.evaluate(whole, episodes=20, center=number) for number in range(3)]
    best, ends = whole.summary["center"], saved(whole.folder.path)
    assert len({found.params_sha256 for found in each}) == 3
    assert escalade.evaluate(whole, episodes=20).params_sha256 == each[best].params_sha256
    assert whole.summary["params_sha256"] == each[best].params_sha256
    files = [whole.folder.center(number).read_bytes() for number in range(3)]
    assert files[best] == whole.folder.policy.read_bytes()
    for number in range(3):
        parts, center = read(whole.folder.center(number)).tensors, ends[f"strategy.{number}.center"]
        weights = np.concatenate([parts[name].ravel() for name in NETWORK])
        np.testing.assert_array_equal(np.sort(weights), np.sort(center))  # files store them transposed
    # One per generation, two more in four of the seven, and three for each center at the end.
    assert whole.summary["eval_episodes_total"] == 7 + 4 * 2 + 3 * 3


def test_command_accepts_center_numbers(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = "--preset none --population 4 --hidden 4 --generations 3 --workers 0 --run-dir run --eval-every 1"
    search = "--behavior info:where --novelty ns:centers=2"
    assert main(["train", ENV, *flags.split(), *search.split()]) == 0
    said = capsys.readouterr().out
    assert " of center 1 " in said
    assert "episodes of center " in said
    assert main(["eval", "run", "--center", "1", "--episodes", "2"]) == 0
    assert "latest policy of center 1: return" in capsys.readouterr().out
    for typed, message in (
        ("eval run --center 2", "--center 2: the run has 2 centers, numbered from 0"),
        ("eval run --center x", "--center 'x' must be a whole number of at least 0"),
        ("eval run --center 0 --checkpoint best", "has one best policy for all centers, so --center 0"),
        ("eval run/policy.safetensors --center 0", "--center 0 has no effect with a policy file"),
        (
            f"train {ENV} --behavior info:where --novelty ns:centers=0",
            "centers must be a whole number from 1",
        ),
    ):
        assert main(typed.split()) == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.strip().splitlines()) == 1


def test_missing_center_is_rejected(whole):
    with pytest.raises(InputError, match="the run has 3"):
        escalade.evaluate(whole.folder, center=-1)


@pytest.mark.parametrize("value", [np.inf, 1e35])
def test_center_with_a_diverged_last_evaluation_is_not_the_run_policy(value, tmp_path, monkeypatch):
    play = PolicyObjective._play

    def played(objective, *given):
        found = play(objective, *given)
        returns = np.full_like(found.returns, value) if objective.centers.drawn == 1 else found.returns
        return replace(found, returns=returns)

    monkeypatch.setattr(PolicyObjective, "_play", played)
    assert trained(tmp_path / "run").summary["center"] != 1


def test_single_neighbor_excludes_the_own_behavior_and_missing_novelty_is_the_mean():
    search = search_with([(0, 0), (1, 0), (4, 0)], [0, 1, 2])
    search.options = NoveltyOptions("ns:k=1")
    drawn = [search.draw(3, generation, 7) for generation in range(3, 3003)]
    np.testing.assert_allclose(np.bincount(drawn) / 3000, np.array([1, 1, 3]) / 5, atol=0.03)
    drawn = [search.draw(4, generation, 7) for generation in range(4, 3004)]
    np.testing.assert_allclose(np.bincount(drawn) / 3000, np.array([3, 3, 9, 5]) / 20, atol=0.03)


def interrupted(folder, **options):
    """A run whose user presses Ctrl-C in the fifth generation."""

    def press(state):
        if state.row.generation == 5:
            signal.raise_signal(signal.SIGINT)

    return trained(folder, callbacks=[press], on_interrupt="return", **options)


def test_worth_of_a_center_is_its_mean_return_not_its_fitness(tmp_path):
    ran = interrupted(tmp_path / "run", weight_penalty=1e6, eval_every=100)
    worth = saved(ran.folder.path)["centers.worth"]
    assert np.abs(worth).max() < 100  # fitness is some 100,000 below the return


def test_each_center_has_its_own_step_cap(tmp_path):
    first = trained(tmp_path / "cut", cutoff="mean:1.5", generations=3)
    caps = saved(first.folder.path)["centers.caps"]
    assert len(caps) == 3
    assert len(set(caps)) > 1
    again = escalade.resume(first, generations=6, verbose=False)
    whole = trained(tmp_path / "whole", cutoff="mean:1.5", generations=6)
    assert again.summary["params_sha256"] == whole.summary["params_sha256"]
