"""Reward transforms: fitness uses the transformed rewards, returns use the original ones."""

from dataclasses import replace

import numpy as np
import pytest

import escalade
from escalade import InputError
from escalade.engines.base import InProcessEngine
from escalade.envs import ActionMap, resolve
from escalade.perturbation import GaussianPopulation, NoiseTable
from escalade.policies.networks import batched_network, build, to_vector
from escalade.recorders.progress import read_progress
from escalade.rollout.episodes import EpisodeJob, Episodes
from escalade.rollout.rewards import Reward
from escalade.rollout.rollouts import RolloutSetup

TABLE = NoiseTable(3, 2**12)
REWARDS = np.array([-100.0, -1.0, 0.0, 0.5, 3.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shift=1", [-101, -2, -1, -0.5, 2]),
        ("floor=-1", [-1, -1, 0, 0.5, 3]),
        ("shift=0.5,floor=-1", [-1, -1, -0.5, 0, 2.5]),
        ("info=speed", REWARDS),
    ],
)
def test_shift_is_applied_before_floor(text, expected):
    transform = Reward(text)
    np.testing.assert_array_equal(transform(REWARDS), expected)
    assert transform(REWARDS) is not REWARDS


@pytest.mark.parametrize("text", ["", "5", "shift=", "shift=inf", "info=", "floor=1,top=2"])
def test_invalid_transform_is_rejected(text):
    with pytest.raises(InputError, match=r"^`reward` .* must be info=NAME, shift=X or floor=X"):
        Reward(text)


def episodes(reward, env="tests.environments:Informs-v0", info=None):
    environment = resolve(env, backend="gymnasium", reward_info=info)
    actions = ActionMap(environment.action_space)
    module = build("linear", environment.observation_space.shape[0], actions.outputs)
    center = to_vector(module)
    population = GaussianPopulation(center, 0.5, TABLE, 3, 4, 6)
    setup = RolloutSetup(environment, batched_network(module), actions, TABLE, reward=reward)
    engine = InProcessEngine(setup)
    job = EpisodeJob(3, 4, population, 2, center, 3)
    return Episodes.of(engine.run(job, job.items))


def test_scores_use_transformed_rewards_and_returns_use_original_ones():
    plain, shifted = episodes(None), episodes(Reward("shift=10"))
    assert plain.returns.shape == shifted.scores.shape == (15,)
    np.testing.assert_array_equal(shifted.returns, plain.returns)
    np.testing.assert_array_equal(plain.scores, plain.returns)
    np.testing.assert_allclose(shifted.scores, plain.returns - 10.0 * plain.lengths)


def test_info_entry_is_added_to_the_reward():
    plain = episodes(None)
    informed = episodes(Reward("shift=0"), info="speed")
    from_array = episodes(Reward("shift=0"), info="array")
    np.testing.assert_array_equal(informed.returns, plain.returns)
    assert np.abs(informed.scores - plain.returns).min() > 1
    np.testing.assert_allclose(
        from_array.scores, plain.returns - 10.0 * plain.lengths
    )  # its reward is the entry itself


def test_episode_without_a_usable_return_has_no_score():
    found = episodes(Reward("shift=1"), "tests.environments:Diverges-v0")
    bad = ~np.isfinite(found.returns)
    assert bad.any()
    np.testing.assert_array_equal(~np.isfinite(found.scores), bad)


OPTIONS = {
    "preset": None,
    "verbose": False,
    "policy": "linear",
    "population": 8,
    "eval_every": 2,
    "eval_episodes": 2,
    "workers": 0,
    "seed": 1,
}


def test_run_trains_on_transformed_and_reports_original_rewards(tmp_path):
    def run(name, **options):
        trained = escalade.train(
            "tests.environments:Informs-v0", generations=3, run_dir=tmp_path / name, **OPTIONS, **options
        )
        return trained, read_progress(trained.folder.progress)

    plain, columns = run("plain")
    bounded, bounded_columns = run("bounded", reward="shift=10,floor=0")
    assert bounded.summary["params_sha256"] != plain.summary["params_sha256"]
    for name in ("return_mean", "return_max", "eval_return_mean"):  # before the first update
        assert bounded_columns[name][0] == columns[name][0]
    low, _ = run("low", reward="floor=-1e9")  # below every reward, so ranks do not change
    assert low.summary["params_sha256"] == plain.summary["params_sha256"]
    informed, _ = run("informed", reward="info=speed")
    assert escalade.evaluate(informed, episodes=4).mean > 8  # includes the bonus, unlike the speed
    for other, notes in ((informed, 1), (bounded, 0)):
        said = other.folder.notes.read_text() if other.folder.notes.exists() else ""
        assert said.count("fitness is computed from info 'speed'; returns") == notes


def test_evaluation_does_not_need_the_info(tmp_path):
    options = OPTIONS | {"reward": "info=reward_forward", "max_episode_steps": 5, "policy": "linear"}
    run = escalade.train("Hopper-v5", generations=1, run_dir=tmp_path / "run", **options)
    assert run.summary["backend"] == "gymnasium"
    assert np.isfinite(escalade.evaluate(run, episodes=2, backend="envpool").mean)


@pytest.mark.parametrize(
    ("sharing", "mirrored", "different"),
    [("pair", True, 3 * 2), ("pair", False, 6 * 2), ("member", True, 6 * 2), ("generation", True, 2)],
)
def test_episode_seeds_are_shared_as_configured(sharing, mirrored, different):
    population = GaussianPopulation(np.zeros(3, np.float32), 0.5, TABLE, 3, 4, 6, mirrored)
    job = EpisodeJob(3, 4, population, 2, evaluations=5, seed_sharing=sharing)
    seeds = job.episode_seeds(np.arange(job.items))
    assert len(set(seeds[:12])) == different
    assert len(set(seeds[12:]) - set(seeds[:12])) == 5  # evaluations have their own seeds
    grown = replace(job, first_member=4)
    np.testing.assert_array_equal(grown.episode_seeds(np.arange(4)), seeds[8:12])
