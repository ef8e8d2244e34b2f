"""Ids of packages that register them on import, and errors of missing packages."""

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from escalade import InputError
from escalade.envs import resolve, vectorize
from escalade.envs.providers import _EXTRAS

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def imported_roots(file):
    """Return the packages that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


FAMILIES = {"ALE/Pong-v5": "atari", "PongNoFrameskip-v4": "atari", "AntBulletEnv-v0": "pybullet"}


@pytest.mark.parametrize("env", FAMILIES)
def test_a_missing_package_is_named(env, monkeypatch):
    import gymnasium

    known = {name: spec for name, spec in gymnasium.registry.items() if name not in FAMILIES}
    monkeypatch.setattr(gymnasium, "registry", known)
    real = importlib.util.find_spec
    missing = ("ale_py", "pybullet_envs_gymnasium")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else real(name))
    with pytest.raises(
        InputError, match=rf"{env} needs \w+; install the extra '{FAMILIES[env]}' of escalade"
    ):
        resolve(env)


def test_the_extra_mujoco_has_all_that_gymnasium_imports_for_it():
    """Gymnasium's own extra leaves out `packaging`, which no other package of this extra brings."""
    source = Path(pytest.importorskip("gymnasium.envs.mujoco").__file__).parent.glob("mujoco_*.py")
    roots = {name for file in source for name in imported_roots(file)} - set(sys.stdlib_module_names)
    extra = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["mujoco"]
    installed = {re.split(r"[<>=]", line)[0] for line in extra}
    assert (
        roots - {"gymnasium", "numpy", "glfw"} <= installed == set(_EXTRAS["mujoco"][1])
    )  # mujoco brings glfw


@pytest.mark.parametrize("env", ["AntBulletEnv-v0", "InvertedPendulumBulletEnv-v0"])
def test_pybullet_environments_work_by_name(env):
    pytest.importorskip("pybullet_envs_gymnasium")
    environment = resolve(env)
    assert environment.max_episode_steps == 1000
    assert environment.fresh == env.startswith("Ant")
    vector = vectorize(environment, 2)
    slots, size = np.arange(2), environment.action_space.shape[0]
    first = vector.reset(slots, np.array([3, 4]))
    seen, rewards, _ = vector.step(slots, np.zeros((2, size), np.float32))
    alone = vectorize(environment, 1)
    np.testing.assert_array_equal(alone.reset(slots[:1], np.array([4]))[0], first[1])
    again, reward, _ = alone.step(slots[:1], np.zeros((1, size), np.float32))
    np.testing.assert_array_equal(again[0], seen[1])
    assert reward[0] == rewards[1]
    for used in (vector, alone):
        used.close()


def test_a_walkers_reward_is_the_sum_of_its_info(capfd):
    pytest.importorskip("pybullet_envs_gymnasium")
    env = resolve("AntBulletEnv-v0").make()
    env.reset(seed=1)
    _, reward, _, _, info = env.step(np.full(8, 0.5, np.float32))
    assert reward == pytest.approx(sum(info.values()))
    assert "progress" in info
    env.close()
    assert capfd.readouterr() == ("", "")
