"""A target is met by 100 episodes, not by repeated attempts."""

import math

import numpy as np
import pytest
from tests.recording import Recording

import escalade
from escalade.recorders import read_notes, read_progress
from escalade.training.limits import meets, strictness
from escalade.training.progress import Progress

OPTIONS = {"preset": None, "population": 2, "hidden": [2], "workers": 0, "verbose": False}
OPTIONS |= {"eval_every": 1, "target_return": 1.0}
LUCKY = 11
"""A seed whose seventh confirmation has a mean above the target: in generation 22."""


def chance(folder, **options):
    """Return a run whose returns do not depend on the policy, and its notes."""
    recording = Recording()
    run = escalade.train(
        "tests.environments:Chance-v0", run_dir=folder, recorders=[recording], **(OPTIONS | options)
    )
    return run, recording.notes


@pytest.mark.parametrize("value", [0.42, 0.07, 1.13, -3.3])
def test_returns_that_equal_the_target_are_solved_by_100_episodes(value, tmp_path):
    run, _ = chance(
        tmp_path / "r",
        env_kwargs={"mean": value, "std": 0},
        target_return=value,
        eval_episodes=7,
        generations=3,
    )
    assert (run.summary["solved"], run.summary["eval_episodes"]) == (True, 100)
    assert run.summary["eval_return_mean"] == value  # rounding would make it smaller


def test_constant_return_meets_a_target_equal_to_it():
    for value in np.round(np.random.default_rng(0).normal(size=500), 2):
        for count in (3, 10, 20, 100):
            assert meets(np.full(count, value), value, tries=7)
            assert not meets(np.full(count, value), np.nextafter(value, math.inf))
            assert not meets(np.full(count, value), np.nextafter(value, -math.inf), -1.0)


def test_each_attempt_is_stricter_and_total_false_positives_are_bounded():
    asked = [strictness(number) for number in range(1, 2000)]
    assert asked[0] == 0
    assert asked == sorted(asked)
    lucky = [
        0.5 * math.erfc(one / math.sqrt(2)) for one in asked[1:]
    ]  # for a policy exactly as good as the target
    assert sum(lucky) < 0.33
    returns = np.random.default_rng(1).normal(1.5, 5.0, 100)
    mean, error = returns.mean(), returns.std() / 10
    assert meets(returns, mean - 1.2 * error, tries=2)
    assert not meets(returns, mean - 1.1 * error, tries=2)
    assert meets(-returns, 1.2 * error - mean, -1.0, tries=2)


@pytest.mark.parametrize("seed", [7, 8, LUCKY])
def test_repeated_attempts_do_not_solve_a_task_by_luck(seed, tmp_path):
    run, _ = chance(tmp_path / "r", seed=seed, generations=40)
    assert not run.summary["solved"]
    assert run.summary["best_return"] == max(read_progress(run.folder.progress)["eval_return_mean"])


def test_attempt_that_fails_only_the_stricter_margin_is_noted(tmp_path):
    run, notes = chance(tmp_path / "r", seed=LUCKY, generations=30)
    assert not run.summary["solved"]
    (said,) = [note for note in notes if "standard errors" in note]
    assert said.startswith(
        "generation 22: the mean of 100 fresh episodes is 1.154, which meets the target, "
        "but not by the required 1.016"
    )
    assert "confirmation 7 of a run" in said


def test_resumed_run_counts_attempts_like_an_uninterrupted_one(tmp_path):
    whole, notes = chance(tmp_path / "whole", seed=LUCKY, generations=30)
    assert [note for note in notes if "standard errors" in note]
    chance(tmp_path / "parts", seed=LUCKY, generations=10)
    parts = escalade.resume(tmp_path / "parts", generations=30, verbose=False)
    for name in (
        "solved",
        "eval_return_mean",
        "best_return",
        "best_generation",
        "params_sha256",
        "generations",
    ):
        assert parts.summary[name] == whole.summary[name]
    assert parts.folder.best.read_bytes() == whole.folder.best.read_bytes()


def test_solved_run_with_a_new_target_is_judged_like_a_fresh_run(tmp_path):
    # With seed 3, the first confirmation passes by less than the margin required of a second one.
    fresh, _ = chance(tmp_path / "fresh", seed=3, target_return=0.0, generations=4)
    first, _ = chance(tmp_path / "first", seed=3, target_return=-50.0, generations=4)
    assert first.summary["generations"] == 1
    on = escalade.resume(first, target_return=0.0, verbose=False)
    for name in ("solved", "generations", "eval_return_mean", "params_sha256"):
        assert on.summary[name] == fresh.summary[name]
    assert on.summary["solved"]


def test_attempts_at_a_clearly_easier_target_do_not_count():
    progress = Progress(tries=3, tried=[1.5, 2.5, 3.5])
    progress.reopen(3.0)
    assert progress.tries == 1
    progress.reopen(4.0)
    assert progress.tries == 0
    progress.reopen(None)
    progress.reopen(1.0)  # back to the easier one
    assert progress.tries == 3
    minimized = Progress(tries=2, tried=[-1.5, -2.5])
    minimized.reopen(-2.0, -1.0)
    assert minimized.tries == 1


def test_notes_are_saved_and_not_repeated_by_a_resumed_run(tmp_path):
    whole, said = chance(tmp_path / "whole", seed=LUCKY, generations=30)
    kept = read_notes(whole.folder.notes)
    assert kept == said
    assert [note for note in kept if "was luck" in note]
    killed, _ = chance(tmp_path / "killed", seed=LUCKY, generations=30, snapshot_every=1)
    killed.folder.checkpoints.drop_after(12)
    with killed.folder.notes.open("a") as file:
        file.write('30,"cut sho')  # as left by a kill
    escalade.resume(killed.folder, verbose=False)
    again = read_notes(killed.folder.notes)
    (resuming,) = [note for note in again if note.startswith("resuming ")]
    again.remove(resuming)
    assert again == kept
