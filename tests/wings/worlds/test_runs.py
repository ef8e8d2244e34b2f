"""Runs in batched worlds: reproducibility, resumed runs, evaluations, and errors."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import torch

import escalade
from escalade.config.options import Config
from escalade.errors import EnvironmentFailure, InputError
from escalade.rollout.batches import Batches
from escalade.rollout.episodes import EpisodeJob
from escalade.strategies import ARS
from escalade.training.environments import find_environment
from escalade.wings.worlds import rollouts
from escalade.wings.worlds.world import opened
from escalade.worlds import CartPole

OWN = "tests.wings.worlds.worlds"
SMALL = {"population": 8, "eval_episodes": 2, "generations": 4, "seed": 3, "verbose": False}


def digest(env, folder, **options):
    return escalade.train(env, run_dir=folder, **SMALL | options).summary["params_sha256"]


@pytest.mark.parametrize("env", ["escalade.worlds:Pendulum", f"{OWN}:Line"])
def test_workers_and_resuming_do_not_change_the_result(env, tmp_path):
    options = {"max_episode_steps": 30}
    whole = digest(env, tmp_path / "whole", **options)
    assert digest(env, tmp_path / "workers", workers=2, **options) == whole
    digest(env, tmp_path / "part", **options | {"generations": 2})
    resumed = escalade.resume(tmp_path / "part", generations=4, verbose=False)
    assert resumed.summary["params_sha256"] == whole


def test_each_thread_steps_a_world_of_its_own(tmp_path):
    options = {"num_envs": 4}
    whole = digest(f"{OWN}:Line", tmp_path / "whole", **options)
    assert digest(f"{OWN}:Line", tmp_path / "threads", workers=3, engine="threads", **options) == whole


def test_num_envs_does_not_change_the_result_with_row_seeds(tmp_path):
    options = {"episodes_per_member": 2, "max_episode_steps": 40}
    found = {
        digest("escalade.worlds:CartPole", tmp_path / str(rows), num_envs=rows, **options)
        for rows in (4, 9, 64)
    }
    assert len(found) == 1


def test_ended_episodes_are_no_longer_stepped(tmp_path, monkeypatch):
    stepped, advance = [], CartPole.advance

    def counted(self, actions):
        stepped.append(len(actions))
        return advance(self, actions)

    monkeypatch.setattr(CartPole, "advance", counted)
    whole = digest("escalade.worlds:CartPole", tmp_path / "whole", num_envs=16)
    assert stepped[0] == 12  # eight members, and two evaluations with drawn and with best actions
    assert min(stepped) < 5
    monkeypatch.setattr(CartPole, "select_rows", lambda self, rows: False)
    stepped.clear()
    assert digest("escalade.worlds:CartPole", tmp_path / "all", num_envs=16) == whole
    assert set(stepped) == {16}


def test_rows_are_selected_only_if_no_other_tensor_has_them():
    world, rows = CartPole(4), torch.tensor([0, 2])
    first, _ = world.reset(seed=torch.arange(4))
    world.masses = torch.ones(4)
    assert not world.select_rows(rows)
    del world.masses
    assert world.select_rows(rows)
    assert torch.equal(world.state, first[rows])
    assert len(world.step(torch.zeros(2, dtype=torch.int64))[0]) == 2


def test_a_world_whose_rows_were_removed_begins_again_with_all():
    environment = find_environment(Config(env="escalade.worlds:CartPole", num_envs=4))
    vector, slots = rollouts.make_vector(environment, 4), np.arange(4)
    vector.reset(slots, slots)
    world = opened(environment, shared=True)
    assert opened(environment) is not world
    assert world.select(torch.tensor([0, 2]))
    assert len(vector.step(slots, np.zeros(4, np.int64))[1]) == 4
    vector.close()


def test_a_world_is_trained_evaluated_and_exported_like_any_environment(tmp_path):
    run = escalade.train(
        "escalade.worlds:CartPole", run_dir=tmp_path / "run", seed=1, target_return=475, verbose=False
    )
    assert run.summary["stop_reason"] == "solved"
    found = escalade.evaluate(run, episodes=300)
    assert found.mean > 450
    assert len(found.returns) == 300
    policy, env = escalade.load(tmp_path / "run"), gymnasium.make("CartPole-v1")  # Gymnasium's own
    seen, _ = env.reset(seed=5)
    steps, over = 0, False
    while not over:
        seen, _, ended, cut, _ = env.step(policy.act(seen, deterministic=True))
        steps, over = steps + 1, ended or cut
    assert steps > 400


def test_the_members_of_a_pair_share_a_batch_and_evaluations_fill_the_last():
    strategy = ARS(np.zeros(3, np.float32), population=10, sigma=0.1)
    job = EpisodeJob(0, 0, strategy.sample(), episodes=2, center=np.zeros(3, np.float32), evaluations=5)
    batches = Batches(job, 9)  # pairs have four episodes
    found = [batches.items(batch).tolist() for batch in range(len(batches))]
    assert found == [list(range(0, 8)), list(range(8, 16)), list(range(16, 25))]
    assert [len(Batches(job, 4).items(batch)) for batch in range(7)] == [4, 4, 4, 4, 4, 4, 1]
    with pytest.raises(InputError, match="num_envs"):
        len(Batches(job, 3))


def test_evaluations_alone_are_split_into_batches():
    job = EpisodeJob(0, 0, center=np.zeros(3, np.float32), evaluations=5)
    assert [Batches(job, 2).items(batch).tolist() for batch in range(3)] == [[0, 1], [2, 3], [4]]


def test_observation_groups_and_a_single_tensor_of_ends_are_accepted(tmp_path):
    line, groups = (digest(f"{OWN}:{name}", tmp_path / name) for name in ("Line", "Groups"))
    assert line == groups


def test_a_world_may_keep_its_actions_and_write_its_observations_in_place(tmp_path):
    run = escalade.train(f"{OWN}:Changes", run_dir=tmp_path / "changes", **SMALL)
    assert min(run.history["return_mean"]) > 1e-3  # an overwritten action would not differ
    double, in_place = (digest(f"{OWN}:{name}", tmp_path / name) for name in ("Double", "InPlace"))
    assert double == in_place


def test_the_callers_generators_do_not_change(tmp_path):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    digest(f"{OWN}:Changes", tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_id_with_only_a_vector_entry_point_is_a_world(tmp_path):
    run = escalade.train(f"{OWN}:Counting-v0", run_dir=tmp_path, head="plain", **SMALL)
    assert run.history["env_steps"][-1] == 4 * 8 * 9


def test_a_row_with_nan_is_the_worst_of_its_generation(tmp_path):
    for name, options in (("a", {}), ("b", {"normalize_observations": False})):
        with pytest.warns(RuntimeWarning, match="member 3 .* returned nan"):
            run = escalade.train(f"{OWN}:Broken", run_dir=tmp_path / name, **SMALL | options)
        assert list(run.history["nonfinite"]) == [1, 1, 1, 1]


def test_a_world_that_does_not_repeat_itself_is_reported(tmp_path, capsys):
    escalade.train(f"{OWN}:Restless", run_dir=tmp_path, **SMALL | {"verbose": True})
    assert "does not repeat a batch of episodes exactly (two runs differ from step 2 on)" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Growing", "all must have the same shape"),
        ("Unseeded", r"failed in reset\(seed=...\)"),
        ("Elsewhere", "returned a tensor on meta with `device` cpu"),
        ("without_actions", "has no `single_action_space`"),
    ],
)
def test_errors_of_a_world_are_one_line(name, words, tmp_path):
    with pytest.raises((InputError, EnvironmentFailure), match=words):
        escalade.train(f"{OWN}:{name}", run_dir=tmp_path / "run", **SMALL)


def test_too_many_episodes_name_num_envs(tmp_path):
    with pytest.raises(EnvironmentFailure, match="use a smaller `num_envs`"):
        escalade.train(f"{OWN}:Full", run_dir=tmp_path / "run", **SMALL | {"population": 64})
    digest(f"{OWN}:Full", tmp_path / "small", population=64, num_envs=32)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "cuda:7"}, "cannot be used here"),
        ({"behavior": "observation:0"}, "`behavior` has no effect"),
        ({"wrappers": ["gymnasium.wrappers:TimeAwareObservation"]}, "`wrappers` has no effect"),
        ({"backend": "gymnasium"}, "`backend` gymnasium does not have"),
    ],
)
def test_options_that_have_no_effect_are_refused(options, words, tmp_path):
    with pytest.raises(InputError, match=words):
        escalade.train(f"{OWN}:Line", run_dir=tmp_path / "run", **SMALL | options)


def test_a_run_of_a_different_device_can_be_evaluated_on_the_cpu(tmp_path, monkeypatch):
    from escalade.api import evaluate

    escalade.train("escalade.worlds:CartPole", run_dir=tmp_path, **SMALL)
    found = evaluate._saved

    def elsewhere(*arguments):
        saved = found(*arguments)
        return replace(saved, config=saved.config.replace(device="cuda:9"))

    monkeypatch.setattr(evaluate, "_saved", elsewhere)
    with pytest.raises(InputError, match="cuda:9"):
        escalade.evaluate(tmp_path, episodes=3)
    assert len(escalade.evaluate(tmp_path, episodes=3, device="cpu").returns) == 3


def test_a_device_is_refused_for_other_environments(tmp_path):
    with pytest.raises(InputError, match="CartPole-v1 and its policies run on the CPU"):
        escalade.train("CartPole-v1", device="cuda", run_dir=tmp_path / "run", **SMALL)


@pytest.mark.parametrize("provider", ["mjlab", "gymnax", "brax", "playground"])
def test_a_provider_that_is_not_installed_is_refused(provider, tmp_path):
    with pytest.raises(InputError, match=f"{provider}:Any"):
        escalade.train(f"{provider}:Any", run_dir=tmp_path / "run", **SMALL)
