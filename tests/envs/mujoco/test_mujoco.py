"""Episodes of MuJoCo's batch are bit-identical to Gymnasium's."""

import importlib.util
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from escalade import InputError
from escalade.envs import Environment, SlotError, resolve, settle_backend, vectorize
from escalade.envs.mujoco.backend import MujocoVector, _may_touch
from escalade.envs.mujoco.tasks import TASKS

batch = pytest.importorskip("mujoco.batch")
LIMIT = 25


def seeded(values):
    return np.array(values, np.int64)


def both(env, slots):
    """The same slots on this backend and on Gymnasium's, with all results of a step."""
    environment = resolve(env, max_episode_steps=LIMIT, info_keys=TASKS[env].infos)
    return [vectorize(replace(environment, backend=name), slots) for name in ("mujoco", "gymnasium")]


def assert_same_bits(ours, theirs):
    assert ours.dtype == theirs.dtype
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("env", TASKS)
def test_episodes_equal_gymnasiums_in_any_slot_and_order(env):
    ours, theirs = both(env, 7)
    chance = np.random.default_rng(1)
    space = resolve(env).action_space
    slots, ends = seeded([4, 0, 6, 3, 5]), 0  # one and two stay empty for a while
    assert_same_bits(ours.reset(slots, slots + 50), theirs.reset(slots, slots + 50))
    for step in range(60):
        shape = (len(slots), *space.shape)
        actions = (chance.uniform(space.low, space.high, shape) * 1.2).astype(np.float32)
        (seen, rewards, ended), expected = ours.step(slots, actions), theirs.step(slots, actions)
        assert_same_bits(seen, expected[0])
        assert_same_bits(rewards, expected[1])
        assert ended.tolist() == expected[2].tolist()
        assert_same_bits(ours.infos(slots), theirs.infos(slots))
        ends += int(ended.sum())
        again = slots[ended][::-1]
        if step == 5:
            again = np.append(again, [2, 1])
        if len(again):
            seeds = chance.integers(2**31, size=len(again))
            assert_same_bits(ours.reset(again, seeds), theirs.reset(again, seeds))
            slots = np.concatenate([slots[~ended], again])
    assert ends >= 10
    for vector in (ours, theirs):
        vector.close()


@pytest.mark.parametrize("env", TASKS)
def test_an_episode_starts_from_the_positions_and_velocities_of_another(env):
    vector = vectorize(resolve(env, backend="mujoco", max_episode_steps=LIMIT), 4)
    still = np.zeros((1, *resolve(env).action_space.shape), np.float32)
    first = vector.reset(seeded([2]), seeded([5]))
    start = vector.keep(2)
    for _ in range(6):
        seen, rewards, _ = vector.step(seeded([2]), still)
    assert_same_bits(vector.go_on(seeded([3, 0]), [start, start]), np.concatenate([first, first]))
    for _ in range(6):  # the kept state has not changed, and slots do not influence each other
        again, paid, _ = vector.step(seeded([0]), still)
    assert_same_bits(again, seen)
    assert_same_bits(paid, rewards)
    vector.close()


def test_the_step_limit_of_an_episode_that_goes_on_starts_anew():
    vector = vectorize(resolve("Swimmer-v5", backend="mujoco", max_episode_steps=3), 1)
    one, still = seeded([0]), np.zeros((1, 2), np.float32)
    vector.reset(one, one)
    ends = [vector.step(one, still)[2][0] for _ in range(2)]
    vector.go_on(one, [vector.keep(0)])
    assert [*ends, *(vector.step(one, still)[2][0] for _ in range(3))] == [False] * 4 + [True]


def test_a_run_makes_one_environment_for_all_slots(monkeypatch):
    made, steps = [], []
    make = Environment.make
    monkeypatch.setattr(Environment, "make", lambda self, *args: made.append(1) or make(self, *args))
    environment = resolve("Reacher-v5", backend="mujoco", max_episode_steps=3)
    made.clear()
    vector = vectorize(environment, 50)
    step = vector._batch.step
    vector._batch.step = lambda *args: steps.append(args) or step(*args)
    everyone, still = np.arange(50), np.zeros((50, 2), np.float32)
    for wave in range(4):
        vector.reset(everyone, everyone + wave)
        ends = [vector.step(everyone, still)[2].all() for _ in range(3)]
        assert ends == [False, False, True]
    assert (len(made), len(steps)) == (1, 12)


def test_contacts_are_disabled_if_geoms_cannot_touch():
    model = gymnasium.make("Reacher-v5").unwrapped.model
    assert not _may_touch(model)
    model.geom_contype[3] = 1
    assert _may_touch(model)
    assert _may_touch(gymnasium.make("Hopper-v5").unwrapped.model)


def test_a_simulation_that_fails_is_named_by_its_slot():
    vector = vectorize(resolve("Hopper-v5", backend="mujoco"), 4)
    slots = seeded([3, 0, 2])
    vector.reset(slots, slots)

    def fails(ids, nstep):
        raise batch.SimulationError(np.array([2], np.int32), "stack overflow")

    vector._batch.step = fails
    with pytest.raises(SlotError, match="stack overflow") as failure:
        vector.step(slots, np.zeros((3, 3), np.float32))
    assert failure.value.row == 2


def test_auto_selects_it_for_gymnasiums_own_tasks():
    assert settle_backend(resolve("Walker2d-v5")).backend == "mujoco"
    assert isinstance(vectorize(resolve("Swimmer-v5"), 1), MujocoVector)
    assert settle_backend(resolve("Hopper-v5", info_keys=["reward_survive"])).backend == "mujoco"
    for other in (
        resolve("Ant-v5"),
        resolve("Hopper-v4"),
        resolve("Hopper-v5", {"healthy_reward": 2.0}),
        resolve("Hopper-v5", info_keys=["no_such"]),
        resolve("Hopper-v5", reward_info="reward_forward"),
        resolve("CartPole-v1"),
    ):
        assert settle_backend(other).backend in ("envpool", "gymnasium")


def test_an_older_mujoco_is_left_to_the_other_backends(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mujoco.batch" else find(name)
    )
    assert settle_backend(resolve("Hopper-v5")).backend in ("envpool", "gymnasium")
    with pytest.raises(InputError, match=r"MuJoCo's batch \(of 4.0 and later\) has no Hopper-v5"):
        settle_backend(resolve("Hopper-v5", backend="mujoco"))
