"""User-defined strategies that draw from global generators, or contain an error."""

import random
import re

import numpy as np
import pytest
import torch
from torch import nn

import escalade
from escalade.errors import InputError
from escalade.strategies import SNES, DensePopulation, OpenAIES, Strategy
from escalade.training.strategy import build_strategy
from escalade.wings.checking.strategy import check_strategy

TINY = {"preset": None, "population": 6, "generations": 4, "verbose": False, "workers": 0, "eval_every": 2}


class Cauchy(Strategy):
    """Heavy-tailed members drawn from every global generator; the center follows with momentum."""

    def __init__(self, x0, population, sigma=0.1, *, seed=0, direction="maximize"):
        super().__init__(x0, population, seed=seed, direction=direction)
        self._sigma = sigma
        self.velocity = torch.zeros(self.dimension)
        self.habit = torch.rand(self.dimension)

    @property
    def sigma(self):
        return self._sigma

    def members(self):
        noise = np.random.standard_cauchy((self.population_size, self.dimension))
        noise += random.random() + self.habit.numpy()
        return DensePopulation(self.center.numpy() + self.sigma * noise.astype(np.float32))

    def update(self, fitness):
        best = torch.from_numpy(self.sample().vectors[fitness.argmax()])
        self.velocity = 0.5 * self.velocity + (best - self.center) * torch.rand(self.dimension)
        self.center += self.velocity

    def state_dict(self):
        return super().state_dict() | {"velocity": self.velocity.clone()}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.velocity = state["velocity"].clone()


def draw_from_global_generators():
    return random.random(), np.random.random(), torch.rand(1).item()


class Restless(Cauchy):
    """Jumps to a random point if all members have equal fitness."""

    def remember(self, fitness):
        self.center += torch.rand(self.dimension) + np.random.random() + random.random()


def trained(tmp_path, name, **options):
    return escalade.train("CartPole-v1", strategy=Cauchy, run_dir=tmp_path / name, **TINY | options)


def test_global_draws_depend_only_on_the_seed_with_any_workers_and_resumes(tmp_path):
    first = trained(tmp_path, "first")
    draw_from_global_generators()  # change the state of the generators
    again = trained(tmp_path, "again", workers=2)
    trained(tmp_path, "parts", generations=2)
    draw_from_global_generators()
    parts = escalade.resume(tmp_path / "parts", generations=4, verbose=False)
    digest = first.summary["params_sha256"]
    assert digest == again.summary["params_sha256"] == parts.summary["params_sha256"]
    assert digest != trained(tmp_path, "other", seed=1).summary["params_sha256"]


def test_global_draws_after_equal_fitness_depend_only_on_the_seed():
    centers = []
    for seed in (1, 1, 2):
        draw_from_global_generators()  # change the state of the generators
        es = build_strategy(Restless, np.zeros(3, np.float32), {"population": 4, "seed": seed})
        for told in ([7.0] * 4, [1.0, 2.0, 3.0, 4.0], [0.0] * 4):
            es.ask()
            before = torch.get_rng_state()
            es.tell(told)
            assert torch.equal(torch.get_rng_state(), before)
        centers.append(es.center.tolist())
    assert centers[0] == centers[1] != centers[2]


def test_overflowing_update_is_rejected_in_one_line_and_leaves_the_center():
    class Leaping(Cauchy):
        def update(self, fitness):
            self.center *= np.inf

    es = build_strategy(Leaping, np.ones(3, np.float32), {"population": 4})
    es.ask()
    with pytest.raises(
        InputError, match=r"generation 1 takes the center beyond the largest .*; use a smaller sigma "
    ):
        es.tell([0.0, 1.0, 2.0, 3.0])
    assert es.center.tolist() == [1.0, 1.0, 1.0]


class Remembers(OpenAIES):
    """Stores its own array, tensor and NumPy scalars."""

    adapted = ("seen", "mean", "count", "worst")

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.seen, self.mean = np.zeros(0), torch.zeros(self.dimension)
        self.count, self.worst = 0, 0.0

    def update(self, fitness):
        super().update(fitness)
        self.seen = np.append(self.seen, fitness.max())
        self.mean = 0.5 * self.mean + 0.5 * self.center
        self.count = self.count + np.int64(fitness.argmax())
        self.worst = np.float32(fitness.min())
        self.center += 0.01 * self.mean + 0.001 * self.count + 0.001 * float(self.worst)


def test_attributes_listed_in_adapted_are_saved_and_restored(tmp_path):
    def evolved(**options):
        torch.manual_seed(2)
        return escalade.evolve(nn.Linear(3, 1), total, population=8, strategy=Remembers, **options).center

    def total(module):
        return float(module.weight.sum())

    whole = evolved(generations=6)
    evolved(generations=3, run_dir=tmp_path / "run")
    rest = evolved(generations=6, run_dir=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(rest, whole)


def test_optimize_accepts_a_strategy_without_a_perturbation_argument():
    found = escalade.optimize(lambda x: float((x**2).sum()), np.ones(3), Cauchy, population=8, budget=80)
    assert np.isfinite(found.best_fitness)
    assert found.strategy == "Cauchy"


class Halves(Strategy):
    """Mirrors its first half in its second, so the pairs depend on the number of members."""

    sigma = 0.1

    def members(self):
        half = np.random.standard_normal((self.population_size // 2, self.dimension)).astype(np.float32)
        return DensePopulation(self.center.numpy() + np.concatenate([half, -half]))

    def update(self, fitness):
        self.center += 0.01 * torch.from_numpy(self.sample().vectors[fitness.argmax()])


class Forgetful(Cauchy):
    def state_dict(self):
        return super(Cauchy, self).state_dict()

    def load_state_dict(self, state):
        super(Cauchy, self).load_state_dict(state)


class Flat(Cauchy):
    def members(self):
        return DensePopulation(super().members().vectors[:, :-1])


class Shortening(Cauchy):
    def update(self, fitness):
        self.center = self.center[:1]


class Restarting(Cauchy):
    count = 0

    def members(self):
        Restarting.count += 1
        return DensePopulation(super().members().vectors + np.float32(Restarting.count))


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (OpenAIES, []),
        (SNES, []),
        (Forgetful, ["loading the saved state"]),
        (Flat, [r"not \(8, 5\)"]),
        (Shortening, ["changes the shape or type"]),
        (
            Restarting,
            ["the same seed gives different members", "loading the saved state", "a generation grows"],
        ),
        (Halves, ["a generation grows"]),
    ],
)
def test_check_strategy_reports_errors_of_user_strategies(kind, says):
    found = check_strategy(kind)
    assert len(found) == len(says)
    for line, words in zip(found, says, strict=True):
        assert re.search(words, line)
