"""escalade.qd: our workers evaluate the solutions of pyribs and fill the same archive as a plain loop."""

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from tests.later import Later

import escalade
from escalade import InputError
from escalade.perturbation import Stream, seeds
from escalade.strategies import RMES, OpenAIES

ribs, qd = Later("ribs"), Later("escalade.qd")

OPTIONS = {"behavior": "observation:0,2", "workers": 0, "max_episode_steps": 60, "backend": "gymnasium"}
BOX = {"dims": (10, 10), "ranges": ((-1.0, 1.0), (-0.3, 0.3))}


def map_elites(start, evaluate, batches=6):
    """Return the archive of a search that mutates elites at random."""
    archive = ribs.archives.GridArchive(solution_dim=len(start), seed=1, **BOX)
    emitter = ribs.emitters.GaussianEmitter(archive, sigma=0.5, x0=start, batch_size=12, seed=2)
    scheduler = ribs.schedulers.Scheduler(archive, [emitter])
    for _ in range(batches):
        scheduler.tell(*evaluate(scheduler.ask()))
    return archive


def contents(archive):
    data = archive.data(return_type="dict")
    order = np.argsort(data["index"])
    return {name: np.asarray(values)[order] for name, values in data.items()}


def assert_same(one, other):
    one, other = contents(one), contents(other)
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


class PlainLoop:
    """Evaluate CartPole one episode at a time, without Escalade's rollouts and workers."""

    def __init__(self, policy_of):
        self.policy_of, self.calls = policy_of, 0
        self.env = gymnasium.make("CartPole-v1", max_episode_steps=60)

    def __call__(self, solutions):
        fitness, behaviors = zip(*(self.play(*each) for each in enumerate(solutions)), strict=True)
        self.calls += 1
        return np.array(fitness), np.array(behaviors, np.float32)

    def play(self, place, solution):
        network = self.policy_of(solution).network
        seed = int(seeds(0, Stream.EPISODE, self.calls, place, 0))
        observation, _ = self.env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            with torch.no_grad():
                action = int(network(torch.from_numpy(observation)[None]).argmax())
            observation, reward, terminated, truncated, _ = self.env.step(action)
            total, ended = total + reward, terminated or truncated
        return total, observation[[0, 2]]


@pytest.mark.slow("src/escalade/qd.py")
def test_map_elites_fills_the_same_archive_as_a_plain_loop():
    with qd.evaluator("CartPole-v1", **OPTIONS) as evaluate:
        ours = map_elites(evaluate.start, evaluate)
        plain = map_elites(evaluate.start, PlainLoop(evaluate.policy))
    assert len(ours) > 8
    assert_same(ours, plain)


@pytest.mark.slow("src/escalade/qd.py", "src/escalade/engines", "src/escalade/rollout")
def test_workers_do_not_change_the_result():
    with qd.evaluator("CartPole-v1", **OPTIONS) as evaluate:
        alone = map_elites(evaluate.start, evaluate, 3)
    with qd.evaluator("CartPole-v1", **OPTIONS | {"workers": 2}) as evaluate:
        assert_same(map_elites(evaluate.start, evaluate, 3), alone)


def test_several_episodes_are_averaged():
    with qd.evaluator("CartPole-v1", **OPTIONS, episodes_per_member=2) as evaluate:
        solutions = np.stack([evaluate.start, evaluate.start + 0.5])
        fitness, behaviors = evaluate(solutions)
        again, _ = evaluate(solutions)
    assert (fitness.shape, behaviors.shape) == ((2,), (2, 2))
    assert (fitness.dtype, behaviors.dtype) == (np.float64, np.float32)
    assert bool((fitness * 2 % 1 == 0).all())
    assert not np.array_equal(fitness, again)  # the second call uses different episodes


def test_the_policy_of_a_cell_can_be_saved_and_evaluated(tmp_path):
    with qd.evaluator("CartPole-v1", **OPTIONS) as evaluate:
        archive = map_elites(evaluate.start, evaluate, 2)
        evaluate.policy(archive.best_elite["solution"]).save(tmp_path / "best.safetensors")
    found = escalade.evaluate(tmp_path / "best.safetensors", episodes=3, workers=0)
    assert found.returns.shape == (3,)


# Our strategies as emitters


def sphere(solutions):
    """Return fitness with its maximum at 1, and the first two coordinates as behavior."""
    return -((solutions - 1.0) ** 2).sum(axis=1), solutions[:, :2]


def improve(emitter_of, batches=60):
    archive = ribs.archives.GridArchive(solution_dim=5, dims=(10, 10), ranges=((-2, 2), (-2, 2)), seed=3)
    emitter = emitter_of(archive)
    scheduler = ribs.schedulers.Scheduler(archive, [emitter])
    for _ in range(batches):
        scheduler.tell(*sphere(scheduler.ask()))
    return archive, emitter


@pytest.mark.parametrize("strategy", ["cma-es", "snes", partial(OpenAIES, lr=0.1)])
def test_a_strategy_emitter_fills_an_archive_reproducibly(strategy):
    make = partial(qd.StrategyEmitter, x0=np.zeros(5), strategy=strategy, population=12, sigma=0.3, seed=1)
    archive, emitter = improve(make)
    assert archive.stats.coverage > 0.15
    again, _ = improve(make)
    assert_same(archive, again)
    other, _ = improve(partial(make, seed=2))
    assert not np.array_equal(contents(other)["objective"], contents(archive)["objective"])
    assert emitter.restarts < 60


def test_an_emitter_restarts_from_an_elite_if_nothing_is_added():
    archive = ribs.archives.GridArchive(solution_dim=2, dims=(2, 2), ranges=((-1, 1), (-1, 1)), seed=3)
    emitter = qd.StrategyEmitter(archive, np.zeros(2), population=4, sigma=0.1, seed=1)
    solutions = emitter.ask()
    fitness, behaviors = sphere(solutions)
    info = archive.add(solutions, fitness, behaviors)
    emitter.tell(solutions, fitness, behaviors, info)
    assert emitter.restarts == 0
    solutions = emitter.ask()
    fitness = np.full(4, -100.0)
    emitter.tell(
        solutions, fitness, solutions, archive.add(solutions, fitness, np.sign(solutions) / 4 - 0.001)
    )
    elites = contents(archive)["solution"]
    filled = emitter.restarts
    rejected = {"status": np.zeros(4), "value": np.zeros(4)}
    emitter.tell(emitter.ask(), fitness, solutions, rejected)
    assert emitter.restarts == filled + 1
    mean = emitter.ask().mean(axis=0)
    assert np.abs(elites - mean).max(axis=1).min() < 0.2


def test_an_emitter_restarts_when_its_search_has_converged():
    archive = ribs.archives.GridArchive(solution_dim=2, dims=(2, 2), ranges=((-1, 1), (-1, 1)), seed=3)
    emitter = qd.StrategyEmitter(archive, np.full(2, 0.3), population=6, sigma=0.1, seed=1)
    for _ in range(200):  # the same cell is improved forever
        solutions = emitter.ask()
        fitness = -((solutions - 0.5) ** 2).sum(axis=1)
        emitter.tell(solutions, fitness, solutions, {"status": np.ones(6), "value": fitness})
    assert emitter.restarts >= 1


# Refused arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"behavior": None}, "`behavior` is missing"),
        ({"strategy": "ars"}, "`strategy` has no effect here; remove it"),
        ({"behavior": "info:nowhere"}, "nowhere"),
        ({"hiden": (3,)}, "hiden"),
    ],
)
def test_invalid_options_are_refused_in_one_line(options, message):
    with pytest.raises(InputError) as problem, qd.evaluator("CartPole-v1", **OPTIONS | options) as evaluate:
        evaluate(evaluate.start[None])
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_solutions_of_a_wrong_shape_are_refused():
    with qd.evaluator("CartPole-v1", **OPTIONS) as evaluate:
        for wrong in (evaluate.start, evaluate.start[None, 1:], np.zeros((0, len(evaluate.start)))):
            with pytest.raises(InputError, match=r"solutions must have shape \(n, \d+\), not"):
                evaluate(wrong)
        with pytest.raises(InputError, match="hold a NaN"):
            evaluate(np.full((1, len(evaluate.start)), np.nan))


@pytest.mark.parametrize("own", ["direction", "sigma"])
def test_arguments_of_the_emitter_are_refused_as_strategy_options(own):
    archive = ribs.archives.GridArchive(solution_dim=2, seed=1, **BOX)
    with pytest.raises(InputError, match=f"`options` cannot contain {own}"):
        qd.StrategyEmitter(archive, np.zeros(2), options={own: 3})


def rm_es(x0, **options):
    return RMES(x0, **options)


@pytest.mark.parametrize("strategy", ["rm-es", rm_es])
def test_a_strategy_that_compares_fitness_across_generations_is_refused(strategy):
    archive = ribs.archives.GridArchive(solution_dim=2, seed=1, **BOX)
    with pytest.raises(
        InputError, match=r"^RMES compares a generation's fitness .*; use a different strategy$"
    ):
        qd.StrategyEmitter(archive, np.zeros(2), strategy)


BOUNDS = [(0, 0.5), None, (None, 0.2), (-0.1, None), (-1, 1)]


def test_solutions_of_an_emitter_stay_within_its_bounds():
    low = [0, -np.inf, -np.inf, -0.1, -1]
    high = [0.5, np.inf, 0.2, np.inf, 1]
    seen = []

    class Watched(qd.StrategyEmitter):
        def ask(self):
            seen.append(super().ask())
            return seen[-1]

    archive, emitter = improve(
        partial(Watched, x0=np.zeros(5), population=12, sigma=3.0, bounds=BOUNDS, seed=1)
    )
    solutions = np.concatenate(seen)
    assert (solutions >= low).all()
    assert (solutions <= high).all()
    assert len(archive) > 5
    assert emitter.restarts > 0
    np.testing.assert_array_equal(emitter.upper_bounds, high)


def test_an_emitter_restarts_within_its_bounds_from_an_elite_outside():
    archive = ribs.archives.GridArchive(solution_dim=2, seed=1, **BOX)
    archive.add([[5.0, 5.0]], [1.0], [[0.0, 0.0]])
    emitter = qd.StrategyEmitter(archive, np.zeros(2), population=6, sigma=0.1, bounds=[(-1, 1)] * 2)
    emitter.tell(emitter.ask(), np.zeros(6), np.zeros((6, 2)), {"status": np.zeros(6), "value": np.zeros(6)})
    assert emitter.restarts == 1
    np.testing.assert_allclose(emitter.ask(), 1, atol=0.2)


def test_an_emitter_accepts_a_seed_sequence():
    def asked(seed):
        archive = ribs.archives.GridArchive(solution_dim=2, seed=1, **BOX)
        return qd.StrategyEmitter(archive, np.zeros(2), seed=seed).ask()

    first, second = np.random.SeedSequence(7).spawn(2)
    np.testing.assert_array_equal(asked(first), asked(np.random.SeedSequence(7).spawn(1)[0]))
    assert not np.array_equal(asked(first), asked(second))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"x0": np.zeros(3)}, r"x0 must have the archive's solution_dim, 2, not shape \(3,\)"),
        ({"x0": np.zeros((1, 2))}, r"x0 must have .* not shape \(1, 2\)"),
        ({"x0": 0.0}, r"x0 must have .* not shape \(\)"),
        ({"bounds": [(0, 1), (1, 0)]}, "bounds: parameter 1 has 1 and 0"),
        ({"bounds": [(0, 1), (1, 2)]}, "x0: parameter 1 is 0, outside its bounds"),
    ],
)
def test_invalid_arguments_of_an_emitter_are_refused_at_construction(options, words):
    archive = ribs.archives.GridArchive(solution_dim=2, seed=1, **BOX)
    with pytest.raises(InputError, match=words):
        qd.StrategyEmitter(archive, **{"x0": np.zeros(2)} | options)
