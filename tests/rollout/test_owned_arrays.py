"""Environments own the arrays passed to them: they may keep, share and modify actions and observations."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from tests.environments import ACTIONS
from torch import nn

from escalade.config.conversion import from_values
from escalade.config.options import Config
from escalade.engines import InProcessEngine
from escalade.envs import ActionMap, resolve
from escalade.perturbation import GaussianPopulation, NoiseTable
from escalade.policies.networks import batched_network, build, to_vector
from escalade.policies.normalizer import Normalization
from escalade.rollout.episodes import EpisodeJob, Episodes
from escalade.rollout.rollouts import RolloutSetup

TABLE = NoiseTable(3, 2**12)
MEMBERS, STEPS = 6, 5


class Keeper(gymnasium.Env):
    """Keeps every action, overwrites old ones, and always returns the same observation array.

    The reward of a step is read from the stored action of the previous step.
    """

    shared = np.zeros(3)
    """One array for all environments and all steps, overwritten before each is returned."""

    def __init__(self, action="unbounded", mutate=True):
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = ACTIONS[action]()
        self.mutate = mutate

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.kept, self.steps = self.np_random.normal(size=3), None, 0
        return self.seen(), {}

    def seen(self):
        Keeper.shared[:] = self.state
        return Keeper.shared

    def step(self, action):
        assert isinstance(action, int) or action.flags.writeable
        reward = 0.0
        if self.kept is not None:
            reward = float(np.sum(self.kept, dtype=np.float64))
            if self.mutate and not isinstance(self.kept, int):
                self.kept[...] = 77
        self.kept = action
        self.state = np.sin(3 * self.state + float(np.sum(action)))
        self.steps += 1
        return self.seen(), reward, False, self.steps >= STEPS, {}


gymnasium.register("Keeper-v0", entry_point=f"{__name__}:Keeper")


def by_hand(job, mapping, network, kwargs):
    """Return the returns of every episode, played one by one in an environment that receives copies."""
    returns = []
    forward = network.forward(1)
    for item in range(job.items):
        env = Keeper(**kwargs)
        observation, _ = env.reset(seed=int(job.episode_seeds(np.array([item]))[0]))
        forward.load(0, *job.individual(item))
        total, ended = 0.0, False
        while not ended:
            raw = forward(job.normalization.apply(observation.copy()[None])).copy()
            action = mapping(raw)[0]
            action = action.item() if isinstance(env.action_space, spaces.Discrete) else np.array(action)
            observation, reward, _, ended, _ = env.step(action)
            total += reward
        returns.append(total)
    return np.array(returns)


HOW = [(name, bounding, "plain") for name in ACTIONS for bounding in ("clip", "rescale", "tanh")]
HOW += [
    ("box", "clip", "uniform:5"),
    ("unbounded", "clip", "custom:-0.3,0.3"),
    ("number", "clip", "uniform:3"),
]
HOW = [how for how in HOW if how[0] not in ("text", "dict")]


@pytest.mark.parametrize("general", [False, True], ids=["stack", "torch"])
@pytest.mark.parametrize(("action", "bounding", "head"), HOW, ids=str)
def test_environment_may_keep_and_modify_its_arrays(action, bounding, head, general):
    actions = ActionMap(ACTIONS[action](), bounding, head)
    module = build("mlp", 3, actions.outputs, hidden=[4], init="xavier")
    module = nn.Sequential(module, nn.Identity()) if general else module
    network = batched_network(module)
    population = GaussianPopulation(to_vector(module), 0.5, TABLE, 3, 4, MEMBERS)
    job = EpisodeJob(3, 4, population, normalization=Normalization(np.full(3, 0.1), np.full(3, 1.7)))
    # Registered environments have wrappers that pass arrays through without a copy.
    environment = resolve(f"{__name__}:Keeper-v0", {"action": action}, "gymnasium")
    engine = InProcessEngine(RolloutSetup(environment, network, actions, TABLE))
    found = Episodes.of(engine.run(job, job.items)).returns
    engine.close()
    expected = by_hand(job, actions.compile(), network, {"action": action})
    np.testing.assert_array_equal(found, expected)
    assert len(set(found.tolist())) > 1


class Hoarder(gymnasium.Env):
    """Modifies a list among its arguments."""

    observation_space = spaces.Box(-1.0, 1.0, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, goals):
        self.goals = goals

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goals.append(1)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(len(self.goals)), True, False, {}


gymnasium.register("Hoarder-v0", entry_point=f"{__name__}:Hoarder")


def test_environment_gets_its_own_copy_of_its_arguments():
    given = {"goals": [0]}
    environment = resolve(f"{__name__}:Hoarder-v0", given, "gymnasium")
    for _ in range(2):
        env = environment.make()
        env.reset(seed=1)
        assert env.step(0)[1] == 2
    assert given == {"goals": [0]}
    config = Config(**from_values({"env": "Hoarder-v0", "env_kwargs": given}))
    config.env_kwargs["goals"].append(5)
    assert given == {"goals": [0]}
