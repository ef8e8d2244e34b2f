"""The generation loop: rows, notes, saved files and stop conditions."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.recording import Recording
from torch import nn

import escalade
from escalade.config.files import new_folder
from escalade.config.options import Config
from escalade.policies.networks import to_vector
from escalade.recorders import read_notes, read_progress
from escalade.storage.tensors import read
from escalade.support.interrupts import Interrupts
from escalade.training import saving
from escalade.training.loop import Loop
from escalade.training.objective import Evaluation, copy_of_center
from escalade.training.policy_objective import PolicyObjective
from escalade.training.policy_run import policy_spec
from escalade.training.results import params_sha256, summarize

TINY = {"env": "tests.environments:Walk-v0", "population": 8, "hidden": (4,), "workers": 0, "seed": 2}
TINY |= {"eval_every": 2, "eval_episodes": 3, "backend": "gymnasium"}


class Run:
    """A run of the loop over a policy, assembled by hand as in api/train.py."""

    def __init__(self, config, folder):
        self.recording, self.folder, self.config = Recording(), folder, config
        spec = policy_spec(config)
        self.engine, self.interrupts = spec.engine(), Interrupts()
        self.objective = spec.objective(self.engine, self.interrupts, folder)
        decided = (spec.strategy, spec.limits, spec.eval_every, self.interrupts)
        saver = saving.Saver(folder, spec.snapshot_every)
        self.loop = Loop(self.objective, *decided, recorders=[self.recording], saver=saver)

    def __call__(self):
        with self.interrupts:
            reason = self.loop.run()
        self.objective.save_module(self.loop.strategy)
        return summarize(self.loop, reason, {}, {})

    @property
    def digest(self):
        return params_sha256(copy_of_center(self.loop.strategy), self.objective.learnt())


@pytest.fixture
def make(tmp_path):
    made = []

    def run(**options):
        config = Config(**(TINY | options), run_dir=str(tmp_path / f"run{len(made)}"))
        made.append(Run(config, new_folder(config)))
        return made[-1], made[-1].recording

    yield run
    for one in made:
        one.engine.close()


def test_rows_count_generations_episodes_and_steps(make):
    trainer, recording = make(generations=5, episodes_per_member=2)
    summary = trainer()
    assert [row.generation for row in recording.rows] == [1, 2, 3, 4, 5]
    assert [row.episodes for row in recording.rows] == [16, 32, 48, 64, 80]
    steps = np.diff([0, *(row.env_steps for row in recording.rows)])
    np.testing.assert_allclose([row.episode_length_mean * 16 for row in recording.rows], steps)
    assert [row.eval_return_mean is not None for row in recording.rows] == [True, False, True, False, True]
    assert all((row.unperturbed_rank is None) == (row.eval_return_mean is None) for row in recording.rows)
    assert all(1 <= row.unperturbed_rank <= 9 for row in recording.rows[::2])
    for row in recording.rows:
        assert row.return_min <= row.return_mean <= row.return_max
        assert row.update_ratio > 0
    assert summary["env_steps"] == recording.rows[-1].env_steps
    assert summary["episodes"] == 80


def test_evaluation_longer_than_the_members_cap_is_not_ranked_among_them(make):
    trainer, recording = make(env="CartPole-v1", max_episode_steps=20, generations=3, eval_every=1, cutoff=5)
    trainer()
    assert [row.unperturbed_rank for row in recording.rows] == [None, None, None]
    assert not any("beats every member" in note for note in recording.notes)
    assert any("same fitness" in note for note in recording.notes)  # all survive five steps of CartPole
    trainer, recording = make(generations=1, cutoff=10_000)
    trainer()
    assert recording.rows[0].unperturbed_rank is not None


def test_normalizer_counts_population_steps_and_not_evaluations(make):
    trainer, recording = make(generations=3)
    trainer()
    assert trainer.objective.centers.normalizer.count == recording.rows[-1].env_steps
    plain, _ = make(generations=3, normalize_observations=False)
    plain()
    assert plain.objective.centers.normalizer.count == 0
    assert plain.objective.normalization is None


def test_load_restores_the_saved_state(make):
    trainer, _ = make(generations=3)
    trainer()
    tensors, state = trainer.loop.state()
    other, _ = make(generations=3)
    assert other.digest != trainer.digest
    other.loop.load_state(tensors, state)
    assert other.digest == trainer.digest
    assert other.loop.progress == trainer.loop.progress
    again, state_again = other.loop.state()
    assert again.keys() == tensors.keys()
    for name, value in tensors.items():
        np.testing.assert_array_equal(again[name], value)
    assert state_again["progress"] == state["progress"]


def test_all_equal_fitness_is_explained_and_leaves_the_center(make):
    # One step with a constant reward, so all members are equal.
    options = {"env": "CartPole-v1", "max_episode_steps": 1, "generations": 3, "eval_every": 1}
    trainer, recording = make(**options)
    before = copy_of_center(trainer.loop.strategy)
    trainer()
    np.testing.assert_array_equal(copy_of_center(trainer.loop.strategy), before)
    assert all(row.update_ratio == 0 for row in recording.rows)
    notes = [note for note in recording.notes if "same fitness" in note]
    assert len(notes) == 1
    assert "larger sigma" in notes[0]


def test_uninformative_gradient_is_explained_only_once(make):
    trainer, recording = make(generations=1, max_episode_steps=9)
    for _ in range(100):
        trainer.loop.notes.explain_rank(1, np.arange(8.0), 8.0)
    assert len(recording.notes) == 3
    assert "rank 1 of 9" in recording.notes[0]
    assert "(100 times so far)" in recording.notes[-1]
    for evaluation in (6.5, 7.0):  # below or equal to a member
        trainer.loop.notes.explain_rank(1, np.arange(8.0), evaluation)
    assert len(recording.notes) == 3
    trainer.loop.notes.explain_rank(1, np.full(8, 3.0), 3.0)
    assert "all members have the same fitness" in recording.notes[-1]


def test_nonfinite_returns_are_reported_with_member_and_seed(make):
    trainer, recording = make(env="tests.environments:Diverges-v0", population=20, generations=4)
    trainer()
    note = next(note for note in recording.notes if "returned nan" in note)
    assert "member" in note
    assert int(note.split("episode seed ")[1].split(")")[0]) % 5 == 0
    assert np.isfinite(copy_of_center(trainer.loop.strategy)).all()
    assert np.isfinite(trainer.objective.centers.normalizer.squares).all()
    assert all(math.isfinite(row.return_mean) for row in recording.rows)


def judged(run, monkeypatch, evaluations, confirmations):
    """Replace the means of the run's evaluations and confirmations by these values."""
    objective, measure = run.objective, run.objective.measure
    evaluations, confirmations = iter(evaluations), iter(confirmations)

    def measured(strategy, *, evaluate):
        return replace(
            measure(strategy, evaluate=evaluate), evaluation=Evaluation(np.full(5, next(evaluations)))
        )

    monkeypatch.setattr(objective, "measure", measured)
    monkeypatch.setattr(objective, "confirm", lambda *_: Evaluation(np.full(100, next(confirmations))))


def test_lucky_evaluation_does_not_count_as_solved(make, monkeypatch):
    trainer, recording = make(env="CartPole-v1", target_return=9.0, generations=2, eval_every=1)
    judged(trainer, monkeypatch, [100.0, 100.0], [1.0, 1.0])
    summary = trainer()
    assert not summary["solved"]
    said = "an evaluation of 100 was luck: the mean of 100 fresh episodes is 1"
    assert [note for note in recording.notes if note.endswith(said)]


def test_confirmation_stops_early_if_the_target_is_out_of_reach(make):
    trainer, _ = make(env="CartPole-v1", target_return=400.0)
    objective, strategy = trainer.objective, trainer.loop.strategy
    lucky = Evaluation(np.array([60.0, 500.0]))
    whole = objective.confirm(strategy, lucky)  # the remaining episodes could be as good as that one
    short = objective.confirm(strategy, Evaluation(np.array([60.0])))
    assert (len(whole.returns), len(short.returns)) == (100, 20)
    np.testing.assert_array_equal(short.returns, whole.returns[:20])
    assert not np.array_equal(whole.returns[:20], whole.returns[20:40])  # different episodes
    at_once = objective._play(strategy, 100)
    np.testing.assert_array_equal(at_once.returns, whole.returns)  # the same episodes as before
    objective.config = objective.config.replace(target_return=-1e9)
    assert len(objective.confirm(strategy, lucky).returns) == 100


def test_generation_that_meets_the_target_is_recorded_without_an_update(make, monkeypatch):
    trainer, recording = make(env="CartPole-v1", target_return=9.0, generations=9, eval_every=1)
    judged(trainer, monkeypatch, [1.0, 100.0], [50.0])
    before = []
    trainer.loop.callbacks = [lambda view: before.append(view.center)]
    summary = trainer()
    assert (summary["solved"], summary["generations"], len(recording.rows)) == (True, 2, 2)
    np.testing.assert_array_equal(before[0], before[1])
    assert recording.rows[-1].update_ratio == 0
    progress = trainer.loop.progress
    assert progress.total.episodes == progress.updates.episodes + progress.solving.episodes == 16
    assert summary["eval_return_mean"] == 50.0


@pytest.mark.parametrize(("answer", "reason"), [(True, "callback"), ("stopped", "stopped")])
def test_callback_stops_a_run_with_a_reason(answer, reason, make):
    trainer, recording = make(generations=9)
    trainer.loop.callbacks = [lambda view: None, lambda view: answer]
    assert trainer()["stop_reason"] == reason
    assert len(recording.rows) == 1


def test_evaluation_steps_are_counted_separately(make):
    trainer, recording = make(generations=4)
    summary = trainer()
    assert (
        summary["eval_steps"] > recording.rows[-1].eval_steps > 0
    )  # the last evaluation comes after the last row
    assert summary["env_steps"] == recording.rows[-1].env_steps
    assert trainer.loop.progress.total.eval_episodes == 3 * 3


def test_best_policy_always_matches_the_last_checkpoint(make, monkeypatch):
    monkeypatch.setattr(saving, "_SHARE", 1e12)  # so that only every third generation is written
    trainer, _ = make(generations=9, eval_every=1, snapshot_every=3)
    folder, seen, evaluations = trainer.folder, [], []

    def look(view):
        tensors, state = read(folder.checkpoints.path(folder.checkpoints.generations()[-1]))
        best = state["progress"]["best_generation"]
        seen.append((view.row.generation, best))
        evaluations.append(view.row.eval_return_mean)
        assert folder.best.exists() == (best is not None)
        if best is not None:
            policy = escalade.load(folder.best)
            np.testing.assert_array_equal(to_vector(policy.network), tensors["best.center"])
            np.testing.assert_array_equal(policy.observation_mean.numpy(), tensors["best.mean"])

    trainer.loop.callbacks = [look]
    trainer()
    for generation, best in seen:
        written = evaluations[: generation // 3 * 3]
        assert best == (written.index(max(written)) if written else None)


def test_resumed_run_restores_the_best_policy_of_its_checkpoint(tmp_path):
    options = {key: value for key, value in TINY.items() if key != "env"} | {"eval_every": 1}
    options |= {"preset": None, "verbose": False, "snapshot_every": 1, "run_dir": str(tmp_path / "r")}
    folder = escalade.train(TINY["env"], generations=8, **options).folder
    checkpoints, last = folder.checkpoints, folder.best.read_bytes()
    best = {g: read(checkpoints.path(g)).state["progress"]["best_generation"] for g in range(9)}
    back = max(number for number in best if best[number] != best[8])
    checkpoints.drop_after(back)  # as after a kill before later checkpoints were written
    escalade.resume(folder, generations=back, verbose=False)
    policy, kept = escalade.load(folder.best), read(checkpoints.path(back)).tensors
    np.testing.assert_array_equal(to_vector(policy.network), kept["best.center"])
    assert folder.best.read_bytes() != last
    checkpoints.drop_after(0)
    escalade.resume(folder, generations=8, verbose=False)
    assert folder.best.read_bytes() == last


def test_interrupt_saves_the_completed_generations(make):
    trainer, recording = make(generations=50)
    recorded = recording.generation

    def interrupt(row):
        recorded(row)
        if row.generation == 4:
            trainer.loop.interrupts.requested = True

    recording.generation = interrupt
    summary = trainer()
    assert (summary["stop_reason"], summary["generations"]) == ("interrupted", 4)
    assert trainer.folder.checkpoints.generations()[-1] == 4


def test_failed_run_saves_its_completed_generations(make, monkeypatch):
    monkeypatch.setattr("escalade.training.saving._SHARE", 1e9)  # otherwise each is saved at once
    trainer, _ = make(generations=50)
    measure = trainer.objective.measure

    def fails(*arguments, **keywords):
        if trainer.loop.progress.generation == 4:
            raise escalade.EnvironmentFailure("the simulator crashed")
        return measure(*arguments, **keywords)

    monkeypatch.setattr(trainer.objective, "measure", fails)
    with pytest.raises(escalade.EnvironmentFailure, match="crashed"):
        trainer()
    assert trainer.folder.checkpoints.generations()[-1] == 4
    monkeypatch.undo()
    trainer.folder.lock.release()
    whole, _ = make(generations=6)
    again = escalade.resume(trainer.folder, generations=6, verbose=False)
    assert again.summary["params_sha256"] == whole()["params_sha256"]


def test_run_with_an_interrupted_last_evaluation_is_incomplete_until_resumed(make, monkeypatch):
    trainer, _ = make(generations=3)

    def evaluate(strategy):
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer.objective, "evaluate", evaluate)
    summary = trainer()
    assert (summary["stop_reason"], summary["generations"]) == ("interrupted", 3)


@pytest.mark.parametrize("strategy", ["openai-es", "ars"])
def test_generation_grows_by_whole_populations_to_the_requested_size(strategy, tmp_path):
    options = {key: value for key, value in TINY.items() if key != "env"} | {"strategy": strategy}
    grown = options | {"preset": None, "verbose": False, "min_episodes": 20, "min_env_steps": 200}
    whole = escalade.train(TINY["env"], **grown, generations=6, run_dir=tmp_path / "whole")
    columns = read_progress(whole.folder.progress)
    episodes, steps = (np.diff([0, *columns[name]]) for name in ("episodes", "env_steps"))
    assert (episodes % 8 == 0).all()
    assert len(set(episodes)) > 1  # some generations hold 20 episodes before they hold 200 steps
    assert min(episodes) >= 20
    assert min(steps) >= 200
    cut = escalade.train(TINY["env"], **grown, generations=2, run_dir=tmp_path / "cut")
    resumed = escalade.resume(cut, generations=6, workers=2, verbose=False)
    assert resumed.summary["params_sha256"] == whole.summary["params_sha256"]


def test_population_size_follows_the_schedule(tmp_path):
    options = {key: value for key, value in TINY.items() if key != "env"}
    options |= {"preset": None, "verbose": False, "population": "linear:4:16:4", "episodes_per_member": 2}
    whole = escalade.train(TINY["env"], **options, generations=6, run_dir=tmp_path / "whole")
    episodes = np.diff([0, *read_progress(whole.folder.progress)["episodes"]])
    assert episodes.tolist() == [8, 16, 20, 24, 32, 32]  # 4, 7, 10, 13 and 16 members, by pairs
    cut = escalade.train(TINY["env"], **options, generations=2, run_dir=tmp_path / "cut")
    resumed = escalade.resume(cut, generations=6, workers=2, verbose=False)
    assert resumed.summary["params_sha256"] == whole.summary["params_sha256"]
    grown = escalade.train(TINY["env"], **options, min_episodes=20, generations=3, run_dir=tmp_path / "grown")
    episodes = np.diff([0, *read_progress(grown.folder.progress)["episodes"]])
    assert episodes.tolist() == [24, 32, 20]  # multiples of the scheduled population


def test_run_ends_if_all_returns_are_nan(make):
    trainer, _ = make(env="tests.environments:Diverges-v0", env_kwargs={"every": 1})
    with pytest.raises(escalade.EnvironmentFailure, match=r"all 8 episodes of generation 1 failed or .* nan"):
        trainer()


def test_environment_with_state_across_episodes_is_noted_once(make):
    run, recording = make(env="tests.environments:Remembers-v0", generations=3)
    run()
    said = [note for note in recording.notes if "carries state from one" in note]
    assert len(said) == 1
    assert "`fresh_environments`" in said[0]
    fresh, recording = make(env="tests.environments:Remembers-v0", generations=2, fresh_environments=True)
    fresh()
    assert not any("carries state from one" in note for note in recording.notes)


def test_one_generation_run_is_probed_before_it_is_resumed(tmp_path, monkeypatch):
    probes, note = [], PolicyObjective.reproducibility_notes

    def counted(objective):
        probes.append(objective)
        return note(objective)

    monkeypatch.setattr(PolicyObjective, "reproducibility_notes", counted)
    options = {key: value for key, value in TINY.items() if key != "env"} | {"snapshot_every": 1}
    options |= {"preset": None, "verbose": False, "run_dir": tmp_path / "r"}
    run = escalade.train("tests.environments:Remembers-v0", generations=1, **options)
    before = read_notes(run.folder.notes)
    escalade.resume(run, generations=3, verbose=False)
    assert len(probes) == 1
    assert read_notes(run.folder.notes)[: len(before)] == before


def test_fresh_environments_are_bit_identical_in_any_slot(make, monkeypatch):
    from escalade.rollout import rollouts

    digests = []
    for slots in (3, 30):
        few = {name: replace(entry, most_rows=slots) for name, entry in rollouts.BACKENDS.items()}
        monkeypatch.setattr(rollouts, "BACKENDS", few)
        run, _ = make(env="tests.environments:Remembers-v0", generations=3, fresh_environments=True)
        run()
        digests.append(run.digest)
    assert digests[0] == digests[1]


@pytest.mark.parametrize("way", [pickle.dumps, copy.deepcopy])
def test_view_can_be_pickled_and_copied(way, tmp_path):
    views, options = [], {"population": 4, "generations": 1, "workers": 0}

    def keep(view):
        made = way(view)
        views.append((view, pickle.loads(made) if isinstance(made, bytes) else made))

    escalade.evolve(nn.Linear(2, 1), lambda module: float(module.bias), callbacks=[keep], **options)
    folder = tmp_path / "run"
    escalade.train("CartPole-v1", preset=None, callbacks=[keep], run_dir=folder, verbose=False, **options)
    for view, made in views:
        assert made.row == view.row
        np.testing.assert_array_equal(made.center, view.center)
        expected = view.module().state_dict()
        assert all(torch.equal(part, expected[name]) for name, part in made.module().state_dict().items())
    assert len(views) == 2
