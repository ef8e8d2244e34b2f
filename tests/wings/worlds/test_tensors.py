"""Policies on a device: the same outputs as the module that holds each member."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tests import devices

from escalade.config.options import Config
from escalade.engines.base import InProcessEngine
from escalade.envs.actions import ActionMap
from escalade.errors import InputError
from escalade.perturbation import gumbels
from escalade.perturbation.device import Counters, DeviceNoise
from escalade.policies.drawing import ChoiceNoise
from escalade.policies.modules import is_stateful, map_state
from escalade.policies.networks import layout_of
from escalade.policies.population.layout import copy_module
from escalade.policies.population.torch_network import TorchNetwork
from escalade.rollout.batches import Batches
from escalade.rollout.episodes import EpisodeJob
from escalade.rollout.rollouts import RolloutSetup
from escalade.training.parts import make_parts, make_search
from escalade.wings.worlds import rollouts, tensors

CPU = torch.device("cpu")


class Reference:
    """One row after the other, each by a module that holds its member."""

    selects = False

    def __init__(self, setup):
        self.module = copy_module(setup.network.module)
        self.write = layout_of(self.module).writer(self.module)
        self.map = setup.actions.compile()
        self.draws = ChoiceNoise(setup.actions) if setup.actions.draws else None

    def begin(self, job):
        self.job = job

    def load(self, items, seeds):
        self.items, self.seeds, self.states = items, seeds, [None] * len(seeds)

    def member(self, row):
        vector = self.job.center.clone()
        if row < len(self.items) and self.items[row] < self.job.training_items:
            self.job.population.write(int(self.items[row]) // self.job.episodes, vector)
        return vector

    def __call__(self, seen, step):
        rows = []
        for row in range(len(self.seeds)):
            self.write(self.member(row))
            given = [seen[row : row + 1]]
            if is_stateful(self.module):
                state = self.states[row] or map_state(lambda part: part[None], self.module.initial_state(0))
                raw, self.states[row] = self.module(*given, state)
            else:
                raw = self.module(*given)
            rows.append(raw)
        raw = torch.cat(rows).numpy()
        if self.draws is not None:
            raw = raw + self.draws(self.seeds, np.full(len(self.seeds), step))
        return torch.from_numpy(self.map(raw))


@pytest.mark.parametrize(
    ("policy", "rank", "world"),
    [("mlp", 0, "CartPole"), ("mlp", 1, "Pendulum"), ("gru", 0, "Pendulum"), ("lstm", 2, "CartPole")],
)
def test_a_batch_is_that_of_members_one_by_one(policy, rank, world, monkeypatch):
    config = Config(
        env=f"escalade.worlds:{world}",
        policy=policy,
        hidden=(8, 8) if policy == "mlp" else (6,),
        population=6,
        eval_episodes=2,
        episodes_per_member=2,
        max_episode_steps=40,
    )
    parts = make_parts(config)
    parts.perturbation = DeviceNoise(Counters(CPU), rank, layout_of(parts.policy.network).held_shapes)
    strategy = make_search(config, parts)
    network, actions = TorchNetwork(parts.policy.network), parts.policy.actions
    setup = RolloutSetup(parts.environment, network, actions, parts.perturbation)
    job = EpisodeJob(0, 0, strategy.sample(), episodes=2, center=strategy.center, evaluations=2)
    found = []
    for make in (
        lambda setup, rows: tensors.TensorActor(setup, rows, CPU),
        lambda setup, _: Reference(setup),
    ):
        monkeypatch.setattr(rollouts, "make_actor", make)
        engine = InProcessEngine(setup)
        found.append(Batches(job, parts.environment.num_envs).run(engine))
        engine.close()
    np.testing.assert_array_equal(found[0].lengths, found[1].lengths)
    np.testing.assert_allclose(found[0].returns, found[1].returns, rtol=1e-4)


@pytest.mark.parametrize("bounding", ["clip", "rescale", "tanh", "sigmoid", "clip,tanh,rescale"])
def test_actions_are_mapped_as_on_the_cpu(bounding):
    space = spaces.Box(np.float32([-1, -3, 0]), np.float32([2, np.inf, 5]))
    actions, raw = ActionMap(space, bounding), torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    mapped = tensors.action_map(actions, CPU)(4 * raw).numpy()
    np.testing.assert_allclose(mapped, actions.compile()(4 * raw.numpy()), rtol=1e-6, atol=1e-6)


def test_choices_and_their_noise_are_those_of_the_cpu():
    actions = ActionMap(spaces.Discrete(3, start=5), head="plain")
    raw = torch.tensor([[0.0, 2, 1], [3, 2, 1]])
    assert tensors.action_map(actions, CPU)(raw).tolist() == [6, 5]
    seeds = np.arange(40)
    keys = torch.from_numpy(tensors.hash64(int(tensors.Stream.CHOICE), seeds).view(np.int64))
    expected = gumbels(tensors.Stream.CHOICE, seeds[:, None], 7, np.arange(4))
    np.testing.assert_allclose(tensors.gumbels(keys, 7, 4), expected, rtol=1e-4, atol=1e-4)


def test_unsupported_actions_on_a_device():
    with pytest.raises(InputError, match="Discrete and Box"):
        tensors.action_map(ActionMap(spaces.MultiBinary(3)), CPU)


@pytest.mark.skipif(devices.PLACE.type == "cpu", reason="no other device")
def test_a_world_is_trained_there(tmp_path):
    import escalade

    run = escalade.train(
        "escalade.worlds:CartPole",
        device=str(devices.PLACE),
        population=256,
        target_return=450,
        seconds=60,
        run_dir=tmp_path,
        verbose=False,
    )
    assert run.summary["stop_reason"] == "solved"
