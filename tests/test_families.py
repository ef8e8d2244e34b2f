"""Pixels, memory and PyBullet through all of a run: the same bits however it is worked off, and films."""

import numpy as np
import pytest
from tests.commands import bits

import escalade
from escalade.config.files import read_config
from escalade.storage.run_folder import RunFolder

SMALL = {
    "preset": None,
    "population": 2,
    "hidden": [3],
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
        "frame_skip": 4,
        "max_pool": True,
        "noop_max": 5,
        "sticky_actions": 0.0,
        "max_episode_steps": 8,
    }
    | PIXELS,
    "car": {
        "env": "CarRacing-v3",
        "needs": "Box2D",
        "backend": "gymnasium",
        "action_map": "tanh,sigmoid,sigmoid",
        "burn_in": 3,
        "early_end": 4,
        "max_episode_steps": 6,
    }
    | PIXELS,
    "ant": {
        "env": "AntBulletEnv-v0",
        "needs": "pybullet_envs_gymnasium",
        "backend": "gymnasium",
        "action_map": "tanh",
        "burn_in": 2,
        "max_episode_steps": 8,
        "weight_penalty": 0.01,
    },
}


def trained(folder, family, **options):
    given = SMALL | {name: value for name, value in FAMILIES[family].items() if name != "needs"} | options
    return escalade.train(given.pop("env"), run_dir=str(folder), **given)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_the_same_bits_on_any_workers_and_resumed(family, tmp_path):
    pytest.importorskip(FAMILIES[family]["needs"])
    pytest.importorskip("cv2")
    whole = trained(tmp_path / "whole", family, workers=0)
    trained(tmp_path / "parts", family, workers=2, generations=1)
    escalade.resume(tmp_path / "parts", generations=2, workers=1, verbose=False)
    assert bits(tmp_path / "parts") == bits(tmp_path / "whole")
    config = read_config(RunFolder.open(tmp_path / "whole"))
    assert config.backend == FAMILIES[family]["backend"]
    assert config.frame_stack == FAMILIES[family].get("frame_stack", 1)
    assert whole.summary["env_steps"] <= 4 * FAMILIES[family]["max_episode_steps"]
    assert family == "car" or whole.summary["env_steps"] == 4 * FAMILIES[family]["max_episode_steps"]
    again = escalade.evaluate(tmp_path / "parts", episodes=1, workers=0)
    assert again.lengths[0] <= FAMILIES[family]["max_episode_steps"]
    film = tmp_path / "film.gif"
    total, steps = escalade.render(tmp_path / "whole", film, seed=int(again.lengths[0]), max_steps=3)
    assert (steps, np.isfinite(total)) == (3, True)
    assert film.stat().st_size > 500
