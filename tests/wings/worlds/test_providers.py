"""Worlds of other packages, each in an environment of its own: see docs/devices.md."""

import pytest

import escalade
from escalade.support.imports import missing

PACKAGES = {"mjlab": "mjlab", "gymnax": "gymnax", "brax": "brax", "playground": "mujoco_playground"}
SMALL = {"population": 16, "eval_episodes": 2, "seed": 3, "verbose": False}


def train(env, folder, **options):
    provider = env.partition(":")[0]
    if missing(PACKAGES[provider]):
        pytest.skip(f"{provider} is not installed")
    return escalade.train(env, run_dir=folder, **SMALL | options)


@pytest.mark.slow("src/escalade/wings/worlds")
@pytest.mark.parametrize(
    "env", ["gymnax:CartPole-v1", "brax:inverted_pendulum", "playground:CartpoleBalance"]
)
@pytest.mark.filterwarnings("ignore")
def test_worlds_of_jax_train_resume_and_are_evaluated(env, tmp_path):
    options = {"max_episode_steps": 60}
    whole = train(env, tmp_path / "whole", generations=3, **options)
    train(env, tmp_path / "part", generations=1, **options)
    resumed = escalade.resume(tmp_path / "part", generations=3, verbose=False)
    assert resumed.summary["params_sha256"] == whole.summary["params_sha256"]
    assert len(escalade.evaluate(whole, episodes=30).returns) == 30


@pytest.mark.slow("src/escalade/wings/worlds")
@pytest.mark.filterwarnings("ignore")
def test_a_robot_of_mjlab_gets_better(tmp_path):
    options = {"population": 64, "max_episode_steps": 100, "num_envs": 80}
    whole = train("mjlab:Mjlab-Cartpole-Balance", tmp_path / "whole", generations=10, **options)
    returns = whole.history["return_mean"]
    assert returns[-1] > returns[0]
    train("mjlab:Mjlab-Cartpole-Balance", tmp_path / "part", generations=9, **options)
    resumed = escalade.resume(tmp_path / "part", generations=10, verbose=False)
    assert resumed.summary["params_sha256"] == whole.summary["params_sha256"]
