"""Detection of environments whose episodes do not only depend on seed and actions."""

from dataclasses import replace

import numpy as np
import pytest
from tests import environments

from escalade.envs import probe_purity, purity, resolve, vectorize


def probed(env, fresh=False, **kwargs):
    return probe_purity(resolve(env, kwargs, "gymnasium", fresh_environments=fresh))


@pytest.mark.parametrize(
    "env", ["LunarLander-v3", "ALE/Pong-v5", "tests.environments:Walk-v0", "tests.environments:Shares-v0"]
)
def test_a_pure_environment_is_found_pure(env):
    found = probed(env)
    assert found.verdict == "pure"
    assert found.note(env) is None


def test_state_carried_between_episodes_is_found():
    found = probed("tests.environments:Remembers-v0")
    assert (found.verdict, found.step) == ("history", 0)
    said = found.note("Remembers-v0")
    assert "Remembers-v0 carries state from one episode to the next" in said
    assert "the same seed may not reproduce a run" in said
    assert "`fresh_environments`" in said
    assert probed("tests.environments:Remembers-v0", fresh=True).verdict == "pure"


@pytest.mark.parametrize("fresh", [False, True])
def test_unseeded_randomness_is_found(fresh):
    found = probed("tests.environments:Unseeded-v0", fresh)
    assert (found.verdict, found.step) == ("random", 1)
    assert "`fresh_environments` does not help" in found.note("Unseeded-v0")


@pytest.mark.parametrize("what", ["generator", "space", "number"])
@pytest.mark.parametrize("fresh", [False, True])
def test_state_shared_by_objects_is_found(what, fresh):
    found = probed("tests.environments:Shares-v0", fresh, what=what)
    assert (found.verdict, found.step) == ("shared", 2 if what == "number" else 1)
    assert "share state" in found.note("Shares-v0")


def test_a_failing_environment_does_not_fail_the_probe():
    environments.Fragile.built = 0
    environment = resolve("tests.environments:Fragile-v0", backend="gymnasium")
    found = probe_purity(environment)
    assert found.verdict == "unknown"
    assert "could not be replayed" in found.note("Fragile-v0")
    assert "OSError: the port is taken" in found.note("Fragile-v0")


@pytest.mark.parametrize("env", ["BipedalWalker-v3", "BipedalWalkerHardcore-v3"])
def test_bipedal_walkers_are_built_anew_for_every_episode(env, monkeypatch):
    monkeypatch.setattr(purity, "_SECONDS", np.inf)  # a busy machine would replay too little
    environment = resolve(env, backend="gymnasium")
    assert environment.fresh
    assert probe_purity(environment).verdict == "pure"
    assert probe_purity(replace(environment, fresh=False)).verdict == "history"
    assert not resolve("LunarLander-v3").fresh


def test_with_fresh_environments_every_episode_has_a_new_object(monkeypatch):
    built, closed = [], []

    def close(env):
        closed.append(env)

    monkeypatch.setattr(environments.Walk, "close", close)
    slots, seeds = np.array([0, 2]), np.array([5, 6])
    environment = resolve("tests.environments:Remembers-v0", fresh_environments=True)
    closed.clear()  # the one that was built to read its spaces
    make = type(environment).make
    monkeypatch.setattr(type(environment), "make", lambda self: built.append(make(self)) or built[-1])
    vector = vectorize(environment, 3)
    first = vector.reset(slots, seeds)
    assert (len(built), len(closed)) == (2, 0)
    for episode in range(1, 6):
        np.testing.assert_array_equal(vector.reset(slots, seeds), first)
        assert (len(built), len(closed)) == (2 + 2 * episode, 2 * episode)
    vector.close()
    assert len(closed) == len(built)
