"""Environments that only EnvPool has: names, spaces, flattening and errors."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from escalade import InputError
from escalade.envs import ActionMap, resolve, vectorize
from escalade.envs.envpool import backend as envpool_backend
from escalade.envs.envpool import drawing as envpool_drawing
from escalade.envs.envpool.object import PooledEnv
from escalade.envs.envpool.worlds import Flattening
from escalade.envs.gymnasium_backend import GymnasiumVector
from escalade.envs.spaces import check_observation_space, flatten, observation_size

envpool = pytest.importorskip("envpool")


def seeded(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("name", "env_id"),
    [
        ("CheetahRun-v1", "CheetahRun-v1"),
        ("dm_control/cheetah-run", "CheetahRun-v1"),
        ("dm_control/ball_in_cup-catch-v0", "BallInCupCatch-v1"),
        ("dm_control/humanoid_CMU-run", "HumanoidCMURun-v1"),
        ("Ant-v3", "Ant-v3"),  # Gymnasium has only the id left, with an error
    ],
)
def test_names_resolve_to_envpools_ids(name, env_id):
    environment = resolve(name)
    assert (environment.id, environment.backend, environment.exclusive) == (env_id, "envpool", True)
    assert environment.max_episode_steps == 1000


def test_an_id_of_gymnasiums_is_resolved_without_envpool():
    script = "import sys; from escalade.envs import resolve; resolve('CartPole-v1'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "escalade.envs.envpool.worlds" in modules
    assert not [name for name in modules if name.partition(".")[0] == "envpool"]


@pytest.mark.parametrize("env", ["FetchReach-v4", "MiniGrid-Empty-5x5-v0", "Jumanji/Maze-v0", "NChain-v0"])
def test_a_wave_is_flattened_as_gymnasium_flattens_one(env):
    environment = resolve(env)
    vector, one = vectorize(environment, 3), environment.make()
    space, action = environment.observation_space, ActionMap(environment.action_space).compile()
    seen = vector.reset(seeded(0, 1, 2), seeded(5, 6, 7))
    alone, _ = one.reset(seed=6)
    chosen = action(np.ones((3, ActionMap(environment.action_space).outputs), np.float32))
    for _ in range(4):
        assert space.contains(alone)
        assert (seen.shape, seen.dtype) == ((3, observation_size(space)), np.float32)
        np.testing.assert_array_equal(seen[1], flatten(space, alone))
        seen, rewards, ended = vector.step(seeded(0, 1, 2), chosen)
        alone, reward, terminated, truncated, _ = one.step(chosen[1])
        assert (rewards[1], ended[1]) == (reward, terminated or truncated)


def test_goals_keep_envpools_order():
    space = resolve("FetchReach-v4").observation_space
    assert list(space) == ["observation", "achieved_goal", "desired_goal"]
    pool = envpool.make("FetchReach-v4", env_type="gymnasium", num_envs=1, seed=[9])
    given = pool.reset()[0]
    seen = vectorize(resolve("FetchReach-v4"), 1).reset(seeded(0), seeded(9))[0]
    expected = np.concatenate([given[key][0] for key in space]).astype(np.float32)
    np.testing.assert_array_equal(seen, expected)


def test_nested_parts_and_choices_are_read_from_their_arrays():
    inner = spaces.Dict([("b", spaces.Discrete(3, start=1)), ("a", spaces.MultiBinary((2, 2)))])
    space = spaces.Dict([("x", spaces.Box(-1, 1, (2,), np.float64)), ("in", inner)])
    read = Flattening(space, ["info:env_id", "obs:in.a", "obs:in.b", "obs:x", "reward"])
    flags = np.array([[[True, False], [False, True]]])
    rows = read([np.zeros(1), flags, np.array([2]), np.array([[0.5, -0.5]]), np.zeros(1)])
    assert rows.tolist() == [[0.5, -0.5, 0, 1, 0, 1, 0, 0, 1]]


def test_images_have_their_channels_first():
    assert resolve("gfootball/academy_empty_goal-v1").observation_space.shape == (4, 72, 96)
    assert resolve("Pong-v5").observation_space.shape == (4, 84, 84)
    read = Flattening(spaces.Box(0, 255, (2, 5, 6), np.uint8), ["obs"])
    image = np.arange(60, dtype=np.uint8).reshape(1, 5, 6, 2)
    np.testing.assert_array_equal(read([image]), image.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(read([image.transpose(0, 3, 1, 2)]), image.transpose(0, 3, 1, 2))


def test_actions_are_choices_or_have_bounds():
    assert resolve("BinPack-v2").action_space == spaces.MultiDiscrete([40, 20])
    assert resolve("Catch-v0").action_space == spaces.Discrete(3)
    bounds = resolve("QuadrupedWalk-v1").action_space
    assert (bounds.low.min(), bounds.high.max()) == (-1, 1.1)
    assert resolve("Basic-v1").action_space == spaces.Discrete(6)
    buttons = resolve("Basic-v1", {"use_combined_action": False}).action_space
    assert np.isinf([buttons.low, buttons.high]).all()


def test_limits_are_envpools_or_the_users():
    assert resolve("FetchReach-v4").max_episode_steps == 50
    assert resolve("CliffWalking-v0").max_episode_steps is None
    vector = vectorize(resolve("CliffWalking-v0", max_episode_steps=3), 2)
    vector.reset(seeded(0, 1), seeded(1, 2))
    ends = [vector.step(seeded(0, 1), seeded(0, 0))[2].tolist() for _ in range(3)]
    assert ends == [[False, False]] * 2 + [[True, True]]
    assert vectorize(resolve("CheetahRun-v1", max_episode_steps=1200), 1)._pool is None


def test_an_environment_that_ends_a_step_late_is_truncated(monkeypatch):
    made = envpool_backend.make_pool
    monkeypatch.setattr(envpool_backend, "make_pool", lambda name, seeds, limit, **more: made(name, seeds, 9))
    vector = vectorize(resolve("CliffWalking-v0", max_episode_steps=2), 1)
    vector.reset(seeded(0), seeded(1))
    assert [bool(vector.step(seeded(0), seeded(0))[2][0]) for _ in range(2)] == [False, True]


def test_wrappers_and_frames_use_single_environments():
    environment = resolve("PointMassEasy-v1", wrappers=["gymnasium.wrappers:ClipReward(0.1, 0.2)"])
    vector = vectorize(environment, 1000)
    assert isinstance(vector, GymnasiumVector)
    assert (environment.backend, vector.slots) == ("envpool", 64)
    vector.reset(seeded(0), seeded(1))
    assert vector.step(seeded(0), np.zeros((1, 2)))[1].tolist() == [0.1]


@pytest.mark.parametrize(
    ("env", "options", "words"),
    [
        ("Chess-v1", {}, "several players"),
        ("IntersectionMultiAgent-v0", {}, "several players"),
        ("Cig-v1", {}, "several players"),
        ("CheetahRun-v1", {"backend": "gymnasium"}, "`backend` gymnasium has no CheetahRun-v1, which only"),
        ("Ant-v3", {"backend": "gymnasium"}, "`backend` gymnasium has no Ant-v3"),
        ("CheetahRun-v1", {"info_keys": ["speed"]}, "`info_keys` speed: EnvPool's info of"),
        (
            "CheetahRun-v1",
            {"behavior_keys": ["x"]},
            "`behavior` x: EnvPool's info of Cheetah",
        ),
        (
            "CheetahRun-v1",
            {"kwargs": {"speed": 3}},
            r"failed to start with `env_kwargs` \{'speed': 3\}",
        ),
        ("CheetahRun-v1", {"kwargs": {"num_envs": 3}}, "`env_kwargs`"),
        ("CheetaRun-v1", {}, "unknown environment 'CheetaRun-v1'; did you mean CheetahRun-v1"),
        ("dm_control/cheetah-fly", {}, "unknown environment 'dm_control/cheetah-fly'"),
        ("dm_control/walker_walk", {}, "unknown environment 'dm_control/walker_walk'; .*WalkerWalk-v1"),
        ("zoo:Ant-v5", {}, "zoo:Ant-v5 is a policy, not an environment: use Ant-v5 with `start_from` zoo:"),
    ],
)
def test_unsupported_environments_raise_one_line(env, options, words):
    with pytest.raises(InputError, match=words) as refused:
        resolve(env, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("env", ["PointMassEasy-v1", "MiniGrid-Empty-Random-5x5-v0"])
def test_an_episode_is_the_same_in_any_slot(env):
    vector, slots = vectorize(resolve(env), 2), seeded(0, 1)
    first, again = (np.array(vector.reset(slots, seeds)) for seeds in (seeded(1, 2), seeded(2, 1)))
    np.testing.assert_array_equal(first, again[::-1])


def test_large_models_run_few_at_once(monkeypatch):
    bytes_held = iter([0, 2**29])
    monkeypatch.setattr(envpool_backend, "_memory", lambda: next(bytes_held))
    assert vectorize(resolve("Catch-v0"), 100).slots == 4


def test_a_pooled_environment_renders():
    env = PooledEnv("MiniGrid-Empty-5x5-v0", render_mode="rgb_array")
    env.reset(seed=1)
    assert env.render().shape == (160, 160, 3)


def test_infos_have_one_number_per_key():
    environment = resolve("FetchReach-v4", info_keys=["is_success"])
    vector = vectorize(environment, 2)
    vector.reset(seeded(0, 1), seeded(1, 2))
    vector.step(seeded(0, 1), np.zeros((2, 4), np.float32))
    assert vector.infos(seeded(0, 1)).shape == (2, 1)
    check_observation_space(environment.observation_space)


class Effort(gymnasium.Wrapper):
    """Adds the size of the action to the info."""

    def step(self, action):
        *given, info = self.env.step(action)
        return *given, info | {"effort": np.abs(action).sum()}


@pytest.mark.parametrize("keys", ["info_keys", "behavior_keys"])
def test_an_entry_of_an_info_may_be_a_wrappers(keys):
    wrappers = ["tests.envs.envpool.test_envpool_worlds:Effort"]
    environment = resolve("CheetahRun-v1", wrappers=wrappers, **{keys: ["effort"]})
    assert (environment.backend, environment.info_keys) == ("envpool", ("effort",))
    vector, slots = vectorize(environment, 2), seeded(0, 1)
    vector.reset(slots, seeded(1, 2))
    vector.step(slots, np.array([[0.5] * 6, [-0.25] * 6], np.float32))
    assert vector.infos(slots).tolist() == [[3.0], [1.5]]


def test_rendering_that_fails_in_a_separate_process_is_reported(monkeypatch):
    with pytest.raises(InputError, match=r"Catch-v0 cannot render here.*render not implemented") as refused:
        PooledEnv("Catch-v0", render_mode="rgb_array")
    assert "\n" not in str(refused.value)
    ended = subprocess.CompletedProcess([], -6, "", "ERROR: no OpenGL\n")
    monkeypatch.setattr(envpool_drawing.subprocess, "run", lambda words, **options: ended)
    with pytest.raises(InputError, match=r"cannot render here: ERROR: no OpenGL; .* EGL"):
        PooledEnv("CheetahRun-v1", render_mode="rgb_array")
    with pytest.raises(InputError, match="cannot render here: ERROR: no OpenGL"):
        resolve("CheetahRun-v1", {"from_pixels": True})
