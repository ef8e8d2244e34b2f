"""Whole runs on pixels, memory and PyBullet: identical results on any workers, after resume, and films."""

import signal

import numpy as np
import pytest
from tests.commands import final_digest, running

import escalade
from escalade.config.conversion import toml_text
from escalade.config.files import read_config
from escalade.storage.checkpoints import Checkpoints
from escalade.storage.run_folder import RunFolder

SMALL = {
    "preset": None,
    "population": 2,
    "seed": 3,
    "eval_every": 2,
    "eval_episodes": 1,
    "generations": 2,
    "verbose": False,
}
PIXELS = {"grayscale": True, "resize": [12, 10], "frame_stack": 2}
FAMILIES = {
    "pong": {
        "env": "ALE/Pong-v5",
        "needs": "ale_py",
        "backend": "ale",
        "frame_skip": "4:max",
        "noop_max": 5,
        "sticky_actions": 0.0,
        "max_episode_steps": 8,
        "policy": "conv-lstm",
    }
    | PIXELS,
    "car": {
        "env": "CarRacing-v3",
        "needs": "Box2D",
        "backend": "gymnasium",
        "hidden": [3],
        "action_map": "tanh,sigmoid,sigmoid",
        "wrappers": ["escalade.envs.wrappers:BurnIn(3)"],
        "early_end": 4,
        "max_episode_steps": 6,
    }
    | PIXELS,
    "point": {
        "env": "dm_control/point_mass-easy",
        "needs": "envpool",
        "backend": "envpool",
        "max_episode_steps": 8,
    },
    "ant": {
        "env": "AntBulletEnv-v0",
        "needs": "pybullet_envs_gymnasium",
        "backend": "gymnasium",
        "action_map": "tanh",
        "wrappers": ["escalade.envs.wrappers:BurnIn(2)"],
        "max_episode_steps": 8,
        "weight_penalty": 0.01,
        "policy": "gru",
        "hidden": [3],
    },
}


def options_of(family, **options):
    return SMALL | {name: value for name, value in FAMILIES[family].items() if name != "needs"} | options


def trained(folder, family, **options):
    given = options_of(family, **options)
    return escalade.train(given.pop("env"), run_dir=str(folder), **given)


def killed(folder, family):
    """Train with the real command on two workers until SIGKILL. Return the number of stored generations."""
    given = options_of(family, workers=2, generations=10**6, run_dir=str(folder))
    file = folder.with_suffix(".toml")
    named = {name: value for name, value in given.items() if name not in ("preset", "verbose")}
    file.write_text(toml_text(named))
    with running("train", given["env"], "--preset", "none", "--config", file, cwd=folder.parent) as process:
        checkpoints = Checkpoints(folder / "checkpoints")
        process.until(lambda: max(checkpoints.generations(), default=0) >= 1)
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    return max(checkpoints.generations())


SLOW = ("car", "pong")  # slow to construct
ABOUT = pytest.mark.slow("src/escalade/envs", "src/escalade/engines", "src/escalade/rollout")


@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=ABOUT) if name in SLOW else name for name in FAMILIES]
)
def test_results_are_identical_with_workers_killed_and_resumed(family, tmp_path):
    pytest.importorskip(FAMILIES[family]["needs"])
    pytest.importorskip("cv2")
    generations = killed(tmp_path / "parts", family) + 1
    escalade.resume(tmp_path / "parts", generations=generations, workers=1, verbose=False)
    whole = trained(tmp_path / "whole", family, workers=0, generations=generations)
    assert final_digest(tmp_path / "parts") == final_digest(tmp_path / "whole")
    config = read_config(RunFolder.open(tmp_path / "whole"))
    assert config.backend == FAMILIES[family]["backend"]
    assert config.frame_stack == FAMILIES[family].get("frame_stack", 1)
    most = 2 * generations * FAMILIES[family]["max_episode_steps"]
    assert whole.summary["env_steps"] <= most
    assert family == "car" or whole.summary["env_steps"] == most
    again = escalade.evaluate(tmp_path / "parts", episodes=1, workers=0)
    assert again.lengths[0] <= FAMILIES[family]["max_episode_steps"]
    film = tmp_path / "film.gif"
    total, steps = escalade.render(tmp_path / "whole", film, seed=int(again.lengths[0]), max_steps=3)
    assert (steps, np.isfinite(total)) == (3, True)
    assert film.stat().st_size > 500
