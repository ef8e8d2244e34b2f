"""Members' episodes that start from states of the center's episode."""

from dataclasses import replace

import numpy as np
import pytest
from tests.rollout.test_rollout import Feed

import escalade
from escalade import InputError
from escalade.api.train import train
from escalade.envs import ActionMap, resolve
from escalade.envs.pixels.frames import Frames
from escalade.perturbation import GaussianPopulation, NoiseTable
from escalade.policies.networks import batched_network, build, to_vector
from escalade.rollout.episodes import EpisodeJob
from escalade.rollout.path import APART, Path
from escalade.rollout.rollouts import RolloutSetup
from escalade.strategies.ars import ARS

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

FRAMES = Frames(grayscale=True, resize=(6,), frame_skip=4, frame_stack=2, noop_max=9, sticky_actions=0.0)
MEMBERS = 4
END = 4 * APART + 10


class Numbered:
    """A vector whose states are numbers."""

    def keep(self, slot):
        return slot

    def go_on(self, slots, states):
        return np.array(states)


@pytest.fixture
def work():
    game = resolve("ALE/Boxing-v5", max_episode_steps=3 * APART, frames=FRAMES, num_envs=3)
    network = batched_network(build("linear", 72, 18), (2, 6, 6))
    noise = NoiseTable(3, 2**14)
    made = RolloutSetup(game, network, ActionMap(game.action_space), noise)()
    yield made
    made.close()


def job(along, cap=5):
    center = to_vector(build("linear", 72, 18, seed=1))
    population = GaussianPopulation(center, 0.1, NoiseTable(3, 2**14), 0, 0, MEMBERS, antithetic=True)
    return EpisodeJob(7, 2, population, center=center, evaluations=2, cap=cap, along=along)


def run(work, asked, items):
    feed = Feed(items, most=2)
    work.begin(asked)
    work.run(feed)
    return feed.results


def test_results_do_not_depend_on_the_worker_or_change_the_centers_episode(work):
    asked = job(along=True)
    whole = run(work, asked, range(asked.items))
    assert [int(whole[item]["length"]) for item in range(asked.items)] == [5] * MEMBERS + [3 * APART] * 2
    parts = [run(work, asked, items) for items in ([5, 0], [4], [3, 2, 1])]
    assert {item: row.tobytes() for part in parts for item, row in part.items()} == {
        item: row.tobytes() for item, row in whole.items()
    }
    plain = run(work, job(along=False), range(MEMBERS, MEMBERS + 2))
    assert all(plain[item].tobytes() == whole[item].tobytes() for item in plain)


def test_members_start_in_states_of_the_centers_episode(work, monkeypatch):
    asked, kept, begun = job(along=True), [], []
    games = type(work.vector)
    keep, go_on = games.keep, games.go_on
    monkeypatch.setattr(games, "keep", lambda self, slot: kept.append(keep(self, slot)) or kept[-1])
    monkeypatch.setattr(games, "go_on", lambda self, *given: begun.extend(given[1]) or go_on(self, *given))
    run(work, asked, range(asked.items))
    assert [steps for _, steps in kept] == [0, APART, 2 * APART]
    assert len(begun) == MEMBERS
    assert begun[0] is begun[1]  # both members of a pair start in the same state
    assert begun[2] is begun[3]
    assert all(any(state is one for one in kept) for state in begun)


@pytest.mark.parametrize(
    ("rewarded", "starts"), [([], 1), ([1], 2), ([1, 50], 3), ([80], 4), ([END], 5), ([1, END], 2)]
)
def test_members_start_up_to_40_steps_after_the_last_reward_before_the_end(rewarded, starts):
    path, slots = Path(0, Numbered()), np.arange(10)
    for step in range(END):
        path.keep(step, step, float(sum(at <= step for at in rewarded)))
    path.end(float(len(rewarded)))
    found = path.begin(np.ones(10, bool), slots, seeds=slots)
    assert set(found.tolist()) == set(range(0, starts * APART, APART))


def test_grown_generation_starts_along_the_same_episode(work):
    whole = run(work, job(along=True), range(MEMBERS))
    more = replace(job(along=True), first_member=2, evaluations=0)
    grown = run(work, more, range(2))
    assert [grown[item].tobytes() for item in range(2)] == [whole[item].tobytes() for item in (2, 3)]


@pytest.mark.parametrize("options", [{"env": "CartPole-v1"}, {"env": "ALE/Pong-v5", "early_end": 3}])
def test_unsupported_environments_are_rejected_in_one_line(options):
    line = "`cutoff` along:5 starts episodes in states of another .*the backends `ale` and `mujoco`"
    with pytest.raises(InputError, match=line):
        train(**options, cutoff="along:5", preset="none", generations=1, workers=0, run_dir=None)


def test_mujoco_run_is_bit_identical_with_any_number_of_workers():
    pytest.importorskip("mujoco.batch")
    options = {"cutoff": f"along:{APART}", "population": 8, "max_episode_steps": 3 * APART, "verbose": False}
    first, second = [train("Walker2d-v5", generations=3, workers=n, run_dir=None, **options) for n in (0, 2)]
    assert first.summary["params_sha256"] == second.summary["params_sha256"]


@pytest.mark.parametrize(
    ("options", "relative"),
    [
        ({"cutoff": f"along:{APART}"}, True),
        ({"cutoff": f"along:{APART}", "episode_seeds": "generation"}, False),  # all start in the same state
        ({"cutoff": str(APART)}, False),
    ],
)
def test_members_are_compared_only_within_pairs_that_start_in_states_of_their_own(
    options, relative, monkeypatch
):
    pytest.importorskip("mujoco.batch")
    seen = []
    monkeypatch.setattr(ARS, "update", lambda self, fitness: seen.append(fitness))
    options |= {"strategy": "ars", "population": 8, "generations": 1, "verbose": False}
    train("Walker2d-v5", workers=0, run_dir=None, **options)
    pairs = seen[0].reshape(4, 2)
    assert (abs(pairs[:, 0] - pairs[:, 1]) > 1e-3).any()
    assert (abs(pairs.sum(axis=1)) < 1e-9).all() == relative


def test_resumed_run_is_bit_identical_and_evaluates_on_a_different_backend(tmp_path):
    options = {"population": 4, "strategy_options": {"top_directions": 2}, "max_episode_steps": 50}
    options |= {"cutoff": "along:9", "verbose": False}
    whole = train("ALE/Breakout-v5", generations=2, workers=0, run_dir=tmp_path / "whole", **options)
    train("ALE/Breakout-v5", generations=1, workers=0, run_dir=tmp_path / "parts", **options)
    again = escalade.resume(tmp_path / "parts", generations=2, workers=2, verbose=False)
    files = [run.folder.policy for run in (whole, again)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(escalade.evaluate(whole, episodes=2, backend="gymnasium", workers=0).returns) == 2
