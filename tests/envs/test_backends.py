"""Lookup of environments, choice of backends, and seeding of vector environments."""

import sys
import types
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from escalade import EnvironmentFailure, InputError
from escalade.envs import SlotError, resolve, settle_backend, vectorize
from escalade.envs.backends import BACKENDS, BackendEntry
from escalade.envs.lookup import is_gymnasiums_own
from escalade.envs.pixels.frames import Frames
from escalade.envs.vector import SlowVector

ENVS = ["CartPole-v1", "LunarLander-v3", "HalfCheetah-v5"]


def seeded(values):
    return np.array(values, np.int64)


def actions_for(environment, count, steps):
    environment.action_space.seed(1)
    drawn = [[environment.action_space.sample() for _ in range(count)] for _ in range(steps)]
    return np.array(drawn)


@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
@pytest.mark.parametrize("env", ENVS)
def test_an_episode_depends_only_on_its_seed_and_actions(env, backend):
    environment = resolve(env, backend=backend, max_episode_steps=50)
    chosen = actions_for(environment, 1, 8)
    alone, crowd = vectorize(environment, 1), vectorize(environment, 4)
    for _ in range(2):  # a second episode in the same slots
        first = [alone.reset(seeded([0]), seeded([77]))[0]]
        others = [crowd.reset(seeded([0, 1, 2]), seeded([5, 6, 77]))[2]]
        for action in chosen:
            first.append(alone.step(seeded([0]), action)[0][0])
            others.append(crowd.step(seeded([0, 1, 2]), np.repeat(action, 3, axis=0))[0][2])
        np.testing.assert_array_equal(np.array(first), np.array(others))
    alone.close()
    crowd.close()


@pytest.mark.parametrize("env", ENVS)
def test_the_gymnasium_backend_steps_gymnasium(env):
    environment = resolve(env, backend="gymnasium", max_episode_steps=20)
    vector, plain = vectorize(environment, 2), environment.make()
    observation = vector.reset(seeded([1]), seeded([9]))[0]
    expected, _ = plain.reset(seed=9)
    np.testing.assert_array_equal(observation, expected)
    for action in actions_for(environment, 1, 20):
        observations, rewards, ended = vector.step(seeded([1]), action)
        expected, reward, terminated, truncated, _ = plain.step(action[0])
        np.testing.assert_array_equal(observations[0], expected)
        assert rewards[0] == reward
        assert ended[0] == (terminated or truncated)
        if ended[0]:
            break
    assert ended[0] or env != "HalfCheetah-v5"
    vector.close()


@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
def test_episodes_are_cut_after_max_episode_steps(backend):
    vector = vectorize(resolve("HalfCheetah-v5", backend=backend, max_episode_steps=4), 2)
    vector.reset(seeded([0, 1]), seeded([1, 2]))
    still = np.zeros((2, 6), np.float32)
    ends = [vector.step(seeded([0, 1]), still)[2].tolist() for _ in range(4)]
    assert ends == [[False, False]] * 3 + [[True, True]]
    vector.close()


def test_auto_selects_envpool_only_for_gymnasiums_own_environments():
    assert settle_backend(resolve("tests.environments:Walk-v0")).backend == "gymnasium"
    changed = resolve("CartPole-v1", {"sutton_barto_reward": True})
    assert settle_backend(changed).backend == "gymnasium"
    assert settle_backend(resolve("CartPole-v1", backend="gymnasium")).backend == "gymnasium"
    assert settle_backend(resolve("CartPole-v1")).backend in ("gymnasium", "envpool")


def test_envpool_runs_arguments_that_gymnasium_registers_under_a_different_id():
    arguments, seen = {"continuous": True}, []
    for env, kwargs in (("LunarLander-v3", arguments), ("LunarLanderContinuous-v3", {})):
        vector = vectorize(resolve(env, kwargs, "envpool"), 1)
        vector.reset(seeded([0]), seeded([7]))
        seen.append(vector.step(seeded([0]), np.full((1, 2), 0.7, np.float32))[0])
    np.testing.assert_array_equal(*seen)
    assert settle_backend(resolve("LunarLander-v3", {"enable_wind": True})).backend == "gymnasium"
    with pytest.raises(InputError, match="EnvPool has no LunarLander-v3 with these arguments"):
        settle_backend(resolve("LunarLander-v3", {"continuous": True, "gravity": -5.0}, "envpool"))


@pytest.fixture
def registered():
    """Registers an environment under one of Gymnasium's ids, for one test."""
    before = dict(gymnasium.registry)

    def register(env, **changes):
        spec = before[env]
        gymnasium.registry.pop(env)
        given = {"entry_point": spec.entry_point, "max_episode_steps": spec.max_episode_steps} | changes
        gymnasium.register(env, **given)

    yield register
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


def test_a_users_class_under_a_known_id_stays_the_users(registered):
    registered("CartPole-v1", entry_point="tests.environments:Walk")
    assert settle_backend(resolve("CartPole-v1")).backend == "gymnasium"


def test_gymnasiums_own_registrations_are_known():
    for env in [*ENVS, "Pendulum-v1", "LunarLanderContinuous-v3", "BipedalWalkerHardcore-v3", "Ant-v5"]:
        if env in gymnasium.registry:
            assert is_gymnasiums_own(gymnasium.spec(env)), env
    assert not is_gymnasiums_own(gymnasium.spec("Walk-v0"))


def test_a_backend_that_is_not_installed_is_named(monkeypatch):
    missing = replace(BACKENDS["envpool"], packages=("no_such_package",))
    monkeypatch.setitem(BACKENDS, "envpool", missing)
    with pytest.raises(InputError, match="EnvPool needs no_such_package; install"):
        resolve("CartPole-v1", backend="envpool")
    assert settle_backend(resolve("CartPole-v1")).backend == "gymnasium"


def test_a_backend_is_one_file_and_one_entry(monkeypatch):
    """A backend whose every episode lasts one step, for CartPole alone."""
    module = types.ModuleType("one_step_backend")
    module.supports = lambda environment: environment.id == "CartPole-v1"
    module.make_vector = OneStep
    monkeypatch.setitem(sys.modules, "one_step_backend", module)
    monkeypatch.setitem(BACKENDS, "one-step", BackendEntry("One", "one_step_backend", most_rows=3))
    environment = settle_backend(resolve("CartPole-v1", backend="one-step"))
    assert vectorize(environment, 3).step(seeded([0]), np.zeros(1))[2].tolist() == [True]
    with pytest.raises(InputError, match="One has no Acrobot-v1"):
        settle_backend(resolve("Acrobot-v1", backend="one-step"))


class OneStep:
    refills = True

    def __init__(self, environment, slots):
        self.slots, self.size = slots, environment.observation_space.shape[0]

    def reset(self, slots, seeds):
        return np.zeros((len(slots), self.size))

    def step(self, slots, actions):
        return np.zeros((len(slots), self.size)), np.ones(len(slots)), np.ones(len(slots), bool)

    def close(self):
        pass


def test_building_environments_prints_nothing(capfd, recwarn):
    vector = vectorize(resolve("HalfCheetah-v5", backend="gymnasium"), 2)
    vector.reset(seeded([0, 1]), seeded([1, 2]))
    vector.close()
    assert tuple(capfd.readouterr()) == ("", "")
    assert len(recwarn) == 0


@pytest.mark.parametrize("when", ["reset", "step"])
def test_a_failure_reports_its_slot(when):
    vector = vectorize(resolve("tests.environments:Raises-v0", {"when": when}), 4)
    slots, given = seeded([0, 1, 2]), seeded([1, 2, 3])  # 3 is the bad one

    def play():
        vector.reset(slots, given)
        for _ in range(3):
            vector.step(slots, np.zeros((3, 1), np.float32))

    with pytest.raises(SlotError, match="fell off") as failure:
        play()
    assert failure.value.row == 2


@pytest.mark.parametrize("kind", ["RuntimeError", "SystemExit"])
@pytest.mark.parametrize("when", ["reset", "step"])
def test_a_failed_episode_may_end_alone(when, kind):
    kwargs = {"when": when, "kind": kind}
    vector = vectorize(replace(resolve("tests.environments:Raises-v0", kwargs), forgiving=True), 4)
    slots, actions = seeded([0, 1, 2]), np.zeros((3, 1), np.float32)
    seen, spoilt, ended = [vector.reset(slots, seeded([1, 3, 2]))], [], []  # 3 is the bad one
    for _ in range(1 if when == "reset" else 3):
        observations, rewards, over = vector.step(slots, actions)
        seen.append(observations)
        spoilt.append(np.isnan(rewards).tolist())
        ended.append(over.tolist())
    assert np.isfinite(seen).all()
    assert spoilt[-1] == ended[-1] == [False, True, False]
    assert not np.any(spoilt[:-1])
    assert not np.any(ended[:-1])
    # What was beside it has not noticed, and the slot's next episode is that of any other slot.
    for _ in range(2):
        alone = vectorize(resolve("tests.environments:Raises-v0", kwargs), 1)
        assert np.array_equal(vector.reset(slots[1:2], seeded([5])), alone.reset(slots[:1], seeded([5])))
        assert np.array_equal(vector.step(slots[1:2], actions[:1])[1], alone.step(slots[:1], actions[:1])[1])
        vector.reset(slots[1:2], seeded([6]))


@pytest.mark.parametrize(
    ("env", "kwargs", "kind", "said"),
    [
        ("CartPol-v1", {}, InputError, "did you mean CartPole-v1"),
        ("no_such:X-v0", {}, InputError, "no_such cannot be imported"),
        ("CartPole-v1", {"size": 3}, InputError, "`env_kwargs` .*size"),
        ("CartPole-v1", {"max_episode_steps": 3}, InputError, "`env_kwargs` .*max_episode_steps"),
        ("tests.environments:Particular-v0", {"gravity": 2}, InputError, "gravity must be"),
        ("tests.environments:Tiny-v0", {"observation": "film"}, InputError, "4 dimensions"),
        ("tests.environments:Raises-v0", {"when": "init"}, EnvironmentFailure, "not plugged in"),
    ],
)
def test_unknown_environments_raise(env, kwargs, kind, said):
    with pytest.raises(kind, match=said):
        resolve(env, kwargs)


def test_the_render_mode_of_a_film_overrides_that_of_the_arguments():
    own = resolve("CartPole-v1", {"render_mode": "human"}, backend="gymnasium")
    assert own.make(render_mode="rgb_array").render_mode == "rgb_array"


@pytest.mark.parametrize("form", ["float32", "int", "array", "tensor"])
def test_rewards_of_any_scalar_type_are_accepted(form):
    vector = vectorize(resolve("tests.environments:Pays-v0", {"form": form}), 1)
    plain = vectorize(resolve("tests.environments:Walk-v0", {"end": "truncated", "length": 8}), 1)
    for each in (vector, plain):
        each.reset(seeded([0]), seeded([5]))
    action = np.full((1, 1), 0.5, np.float32)
    paid, expected = (each.step(seeded([0]), action)[1] for each in (vector, plain))
    np.testing.assert_allclose(paid, expected.round() if form == "int" else expected, rtol=1e-6)


def first_ends(form, which, options):
    """The ends of the first steps of two episodes, of lengths 4 and 7."""
    vector = vectorize(resolve("tests.environments:Ends-v0", {"form": form, "which": which}, **options), 2)
    vector.reset(seeded([0, 1]), seeded([5, 7]))
    return [vector.step(seeded([0, 1]), np.zeros((2, 1), np.float32))[2].tolist() for _ in range(3)]


ENDS = [{}, {"frames": Frames(frame_skip=2)}, {"early_end": 30}, {"max_episode_steps": 50}]


@pytest.mark.parametrize("options", ENDS, ids=str)
@pytest.mark.parametrize("which", ["terminated", "truncated"])
def test_ends_may_be_bools_or_arrays_of_one(which, options):
    plain, *found = (first_ends(form, which, options) for form in ("numpy", "array"))
    assert found == [plain]


def test_a_heartbeat_is_sent_before_each_reset():
    vector = vectorize(resolve("CartPole-v1", backend="gymnasium"), 5)
    calls = []
    vector.alive = lambda: calls.append(1)
    vector.reset(np.arange(5), np.arange(5))
    assert isinstance(vector, SlowVector)
    assert len(calls) == 5
