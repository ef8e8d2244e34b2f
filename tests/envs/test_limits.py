"""Step limits of episodes, from all sources and with all wrappers."""

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeAwareObservation, TimeLimit
from tests.environments import Walk

from escalade.envs import resolve
from escalade.envs.environment import registered_limit

NEVER = 10**9
MAKES = "tests.envs.test_limits"


def limited():
    """A factory whose environment has its own limit."""
    return TimeLimit(TimeAwareObservation(TimeLimit(Walk("never"), 9)), 7)


def trials():
    """A factory with an inner limit, after which a wrapper may continue."""
    return TimeAwareObservation(TimeLimit(Walk("never"), 7))


def unlimited():
    return Walk("never")


def steps_of(environment, most=50):
    """Return the number of steps of an episode, or None if it is not truncated."""
    env = environment.make()
    env.reset(seed=3)
    ends = (any(env.step(np.zeros(1, np.float32))[2:4]) for _ in range(most))
    return next((step for step, ended in enumerate(ends, 1) if ended), None)


def test_the_limit_that_a_factory_gives_its_environment_is_known():
    environment = resolve(f"{MAKES}:limited")
    assert environment.max_episode_steps == steps_of(environment) == 7
    shorter = resolve(f"{MAKES}:limited", max_episode_steps=5)
    assert shorter.max_episode_steps == steps_of(shorter) == 5
    assert resolve(f"{MAKES}:unlimited").max_episode_steps is None


def test_an_inner_limit_is_not_the_limit_of_the_environment():
    environment = resolve(f"{MAKES}:trials")
    assert environment.max_episode_steps is None
    assert steps_of(environment) == 7


def test_of_several_limits_the_outermost_is_the_registered_one():
    twice = TimeLimit(TimeAwareObservation(TimeLimit(Walk("never"), 9)), 4)
    assert registered_limit(twice, 1) == 4
    assert registered_limit(Walk("never"), 1) is None
    assert registered_limit(gymnasium.make("CartPole-v1"), 3) == 167  # of 500 steps
