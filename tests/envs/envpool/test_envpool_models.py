"""Models without textures have the same physics."""

import re

import numpy as np
import pytest

from escalade.envs.envpool import families as envpool_families
from escalade.envs.envpool.families import import_for, make_pool
from escalade.envs.envpool.models import without_textures

pytest.importorskip("envpool")
IDS = ("CheetahRun-v1", "FishSwim-v1", "Ant-v4", "FetchReachDense-v1", "MetaWorld/DrawerClose-v3")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    without_textures.cache_clear()
    yield tmp_path / "escalade" / "envpool-models"
    without_textures.cache_clear()


def base_of(env_id):
    return envpool_families._registered(env_id)[2]["base_path"]


def walk(env_id, **settings):
    """Observations of two environments in an episode with random actions."""
    pool = make_pool(env_id, [3, 4], None, **settings)
    chosen, seen = np.random.default_rng(1), [pool.reset()[0]]
    for _ in range(40):
        actions = chosen.uniform(-1, 1, (2, *pool.action_space.shape))
        seen += pool.step(actions.astype(pool.action_space.dtype))[:2]
    return seen


@pytest.mark.parametrize("env_id", IDS)
def test_a_model_without_textures_moves_like_the_original(env_id):
    np.testing.assert_equal(walk(env_id), walk(env_id, base_path=base_of(env_id)))


def test_rendering_pools_use_the_original_models_and_others_the_copy(monkeypatch):
    envpool, taken = import_for("CheetahRun-v1"), []
    monkeypatch.setattr(envpool, "make", lambda *_, **settings: taken.append(settings.get("base_path")))
    make_pool("CheetahRun-v1", [1], None)
    make_pool("CheetahRun-v1", [1], None, render_mode="rgb_array")
    make_pool("CartPole-v1", [1], None)
    make_pool("CheetahRun-v1", [1], None, base_path="mine")
    assert taken == [without_textures(base_of("CheetahRun-v1")), None, None, "mine"]


def test_every_texture_of_the_copy_is_one_pixel_and_all_else_is_linked(own_cache):
    copy = without_textures(base_of("CheetahRun-v1"))
    (only,) = own_cache.iterdir()
    assert copy == str(only)
    texts = [file.read_text() for file in only.rglob("*.xml") if not file.is_symlink()]
    tags = [tag for text in texts for tag in re.findall(r"<texture[^>]*>", text)]
    assert len(tags) > 40
    assert all('builtin="flat" width="1" height="1"' in tag and "file" not in tag for tag in tags)
    dog = only / "mujoco" / "assets_dmc" / "dog_assets"
    assert dog.is_symlink()
    assert any(dog.iterdir())


def test_without_a_writable_cache_the_original_models_are_used(tmp_path, monkeypatch):
    (tmp_path / "mujoco").mkdir()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert without_textures(str(tmp_path)) == str(tmp_path)
