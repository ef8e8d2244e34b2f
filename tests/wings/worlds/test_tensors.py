"""Policies on a device: the same outputs as the module that holds each member."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tests import devices

import escalade
from escalade.config.options import Config
from escalade.engines.base import InProcessEngine
from escalade.envs.actions import ActionMap
from escalade.errors import InputError
from escalade.perturbation.device import Counters, DeviceNoise
from escalade.policies.modules import is_stateful, map_state
from escalade.policies.networks import layout_of
from escalade.policies.policy import Policy
from escalade.policies.population.layout import copy_module
from escalade.policies.population.torch_network import TorchNetwork
from escalade.rollout.batches import Batches
from escalade.rollout.episodes import EpisodeJob
from escalade.rollout.exploration import make_exploration
from escalade.rollout.rollouts import RolloutSetup
from escalade.strategies import ARS
from escalade.training import parts
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
        self.explore = make_exploration(setup.actions, setup.action_noise, None)

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
        if self.explore is not None:
            count = len(self.items)
            raw = raw.copy()
            steps, slots = np.full(count, step), np.arange(count)
            raw[:count] = self.explore(raw[:count], self.job, self.items, self.seeds[:count], steps, slots)
        return torch.from_numpy(self.map(raw))


@pytest.mark.parametrize(
    ("policy", "rank", "world", "noise"),
    [
        ("mlp", 0, "CartPole", 0.0),
        ("mlp", 1, "Pendulum", 0.0),
        ("gru", 0, "Pendulum", 0.3),
        ("lstm", 2, "CartPole", 0.0),
    ],
)
def test_a_batch_equals_members_one_by_one(policy, rank, world, noise, monkeypatch):
    config = Config(
        env=f"escalade.worlds:{world}",
        policy=policy,
        hidden=(8, 8) if policy == "mlp" else (6,),
        population=6,
        eval_episodes=2,
        episodes_per_member=2,
        max_episode_steps=40,
    )
    made = make_parts(config)
    made.perturbation = DeviceNoise(Counters(CPU), rank, layout_of(made.policy.network).held_shapes)
    strategy = make_search(config, made)
    network, actions = TorchNetwork(made.policy.network), made.policy.actions
    setup = RolloutSetup(made.environment, network, actions, made.perturbation, noise)
    job = EpisodeJob(0, 0, strategy.sample(), episodes=2, center=strategy.center, evaluations=2)
    found = []
    for make in (
        lambda setup, rows: tensors.TensorActor(setup, rows, CPU),
        lambda setup, _: Reference(setup),
    ):
        monkeypatch.setattr(rollouts, "make_actor", make)
        engine = InProcessEngine(setup)
        found.append(Batches(job, made.environment.num_envs).run(engine))
        engine.close()
    np.testing.assert_array_equal(found[0].lengths, found[1].lengths)
    np.testing.assert_allclose(found[0].returns, found[1].returns, rtol=1e-4)


@pytest.mark.parametrize("bounding", ["clip", "rescale", "tanh", "sigmoid", "clip,tanh,rescale"])
def test_actions_are_mapped_as_on_the_cpu(bounding):
    space = spaces.Box(np.float32([-1, -3, 0]), np.float32([2, np.inf, 5]))
    actions, raw = ActionMap(space, bounding), torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    mapped = tensors.action_map(actions, CPU)(4 * raw).numpy()
    np.testing.assert_allclose(mapped, actions.compile()(4 * raw.numpy()), rtol=1e-6, atol=1e-6)


def test_discrete_actions_equal_those_of_the_cpu():
    actions = ActionMap(spaces.Discrete(3, start=5), head="plain")
    raw = torch.tensor([[0.0, 2, 1], [3, 2, 1]])
    assert tensors.action_map(actions, CPU)(raw).tolist() == [6, 5]


def noise_of(space):
    """Return the noise of 2,000 members and 5 evaluations in 2,010 rows, there and on the CPU."""
    setup = RolloutSetup(None, None, ActionMap(space, head="auto"), None, 0.3)
    members = ARS(np.zeros(3, np.float32), population=2000, sigma=0.1).sample()
    job = EpisodeJob(0, 0, members, center=np.zeros(3, np.float32), evaluations=5, best_evaluations=2)
    items, seeds = np.arange(2005), np.arange(2010) % 1500
    noise = tensors.OutputNoise(setup, 2010, devices.PLACE)
    noise.load(job, items, seeds)
    found = noise(torch.zeros(2010, 3, device=devices.PLACE), 7).cpu().numpy()
    explore = make_exploration(setup.actions, setup.action_noise, None)
    steps, zeros = np.full(2005, 7), np.zeros((2005, 3), np.float32)
    return found, explore(zeros, job, items, seeds[:2005], steps, items)


@pytest.mark.parametrize("space", [spaces.Discrete(3), spaces.Box(-1, 1, (3,))])
def test_action_noise_equals_that_of_the_cpu(space):
    found, expected = noise_of(space)
    np.testing.assert_allclose(found[:2005], expected, rtol=1e-3, atol=1e-4)
    assert not found[2005:].any()  # rows without an episode


def test_action_noise_has_its_standard_deviation_for_members_only():
    found, _ = noise_of(spaces.Box(-1, 1, (3,)))
    assert found[:1500].std() == pytest.approx(0.3, abs=0.015)  # 4,500 numbers: 5 standard errors
    assert found[:1500].mean() == pytest.approx(0, abs=0.025)
    np.testing.assert_array_equal(found[1500:2000], found[:500])  # the same seeds
    assert not found[2000:].any()


def test_workers_and_resuming_do_not_change_a_run_on_a_device(tmp_path, monkeypatch):
    monkeypatch.setattr(Policy, "batched", property(lambda self: TorchNetwork(self.network)))
    monkeypatch.setattr(rollouts, "make_actor", lambda *given: tensors.TensorActor(*given, CPU))
    monkeypatch.setattr(parts, "_noise", lambda config, device, shapes: DeviceNoise(Counters(CPU), 0, shapes))
    options = {
        **{"strategy": "sep-cma-es", "population": 12, "num_envs": 4, "eval_episodes": 2, "seed": 3},
        **{"max_episode_steps": 10, "verbose": False, "engine": "threads", "policy": "linear"},
    }

    def digest(folder, generations=4, **others):
        given = options | {"action_noise": 0.3} | others
        run = escalade.train(
            "escalade.worlds:Pendulum", run_dir=tmp_path / folder, generations=generations, **given
        )
        return run.summary["params_sha256"]

    whole = digest("whole")
    assert digest("workers", workers=2) == whole
    assert digest("quiet", action_noise=0.0) != whole
    digest("part", generations=2)
    assert escalade.resume(tmp_path / "part", generations=4, verbose=False).summary["params_sha256"] == whole


def test_unsupported_actions_on_a_device_are_refused():
    with pytest.raises(InputError, match="Discrete and Box"):
        tensors.action_map(ActionMap(spaces.MultiBinary(3)), CPU)


@pytest.mark.skipif(devices.PLACE.type == "cpu", reason="no other device")
def test_a_world_is_trained_on_a_device(tmp_path):
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
