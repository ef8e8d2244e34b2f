"""escalade.evolve: any module and any fitness, with identical results on every engine."""

import copy
import math
import os
import pickle
import signal
import threading
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tests.commands import DEADLINE
from tests.recording import Recording
from torch import nn

import escalade
from escalade import EnvironmentFailure, InputError, evolve, load_evolved
from escalade.fitness.work import FitnessJob, FitnessSetup
from escalade.perturbation import NoiseTable
from escalade.policies.population.layout import Layout
from escalade.storage.tensors import read, write
from escalade.strategies import PGPE, SNES, OpenAIES, PersistentES
from escalade.strategies.registry import STRATEGIES
from escalade.support.shared_memory import LARGE
from escalade.training.fitness_objective import FitnessObjective

QUICK = {"population": 8, "generations": 3, "sigma": 0.1, "lr": 0.05}


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


INPUTS = torch.linspace(-1, 1, 15).reshape(5, 3)


def loss(module):
    return ((module(INPUTS).squeeze() - INPUTS.sum(dim=1)) ** 2).mean()


def worth(module):
    return float(loss(module).detach())


def total(module):
    return sum(part.sum() for part in module.parameters())


def noisy(module):
    return -loss(module) + 0.01 * torch.randn(()) + 0.01 * np.random.normal()


# Learning and results


def test_evolve_updates_the_module_in_place_and_reports_its_fitness():
    module = network()
    before = worth(module)
    result = evolve(module, loss, direction="minimize", population=20, generations=60, lr=0.05)
    assert result.module is module
    assert result.eval_return_mean == pytest.approx(worth(module))
    assert result.eval_return_mean < 0.3 * before
    assert result.best_return <= result.eval_return_mean
    assert worth(result.best_module()) == pytest.approx(result.best_return)
    assert worth(module) == pytest.approx(result.eval_return_mean)  # best_module returned a separate module
    assert (result.stop_reason, result.generations, len(result.history)) == ("generations", 60, 60)
    flat = torch.cat([part.detach().reshape(-1) for part in module.parameters()]).numpy()
    assert np.array_equal(flat, result.center)


def test_history_counts_episodes_and_respects_direction():
    result = evolve(network(), loss, direction="minimize", **QUICK)
    assert [row.generation for row in result.history] == [1, 2, 3]
    assert [row.episodes for row in result.history] == [8, 16, 24]
    for row in result.history:
        assert row.return_min < row.return_mean < row.return_max
        assert row.eval_return_mean is not None
        assert (row.sigma, row.lr, row.nonfinite) == (0.1, 0.05, 0)
        assert row.update_ratio > 0


def test_zero_generations_only_evaluate():
    module = network()
    before = copy.deepcopy(module.state_dict())
    result = evolve(module, loss, population=8, generations=0)
    assert result.eval_return_mean == pytest.approx(worth(module))
    assert result.history == ()
    assert all(torch.equal(before[name], part) for name, part in module.state_dict().items())


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_can_be_selected_by_name(name):
    module = nn.Linear(2, 1)
    result = evolve(
        module, lambda m: -((m.weight - 1) ** 2).sum(), strategy=name, population=20, generations=30
    )
    assert result.eval_return_mean > result.history[0].eval_return_mean


@pytest.mark.parametrize(
    "strategy", [SNES, partial(SNES, mirrored=True), lambda x0, **options: PGPE(x0, sigma_lr=0.2, **options)]
)
def test_strategies_can_be_factories(strategy):
    assert evolve(network(), total, strategy=strategy, population=8, generations=2).generations == 2


def test_options_reach_the_strategy():
    result = evolve(
        network(), total, strategy="cem", strategy_options={"elite": 0.5}, population=20, generations=1
    )
    assert result.generations == 1
    sgd = partial(torch.optim.SGD, lr=1.0)
    plain = evolve(network(), total, optimizer=sgd, population=8, generations=1)
    decayed = evolve(network(), total, optimizer=sgd, weight_decay=0.5, population=8, generations=1)
    start = torch.cat([part.detach().reshape(-1) for part in network().parameters()]).numpy()
    assert np.allclose(plain.center - decayed.center, 0.5 * start, atol=1e-6)


def test_schedules_decay_lr_and_sigma():
    result = evolve(
        network(), total, population=8, generations=3, lr="step:0.1:0.5:1", sigma="exponential:0.2:0.5:0.1"
    )
    assert [row.lr for row in result.history] == [0.1, 0.05, 0.025]
    assert [row.sigma for row in result.history] == [0.2, 0.1, 0.1]


# Identical results on every engine


@pytest.fixture(scope="module")
def in_process():
    return evolve(network(), noisy, **QUICK)


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_give_identical_results(in_process, workers):
    result = evolve(network(), noisy, workers=workers, **QUICK)
    assert np.array_equal(result.center, in_process.center)
    assert np.array_equal(result.best, in_process.best)
    assert result.eval_return_mean == in_process.eval_return_mean


def large_network():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Linear(3, 1100), nn.Tanh(), nn.Linear(1100, 1000), nn.Linear(1000, 1, bias=False)
    )
    module.register_buffer("shift", torch.full((), 0.25))
    module[1].again = module[2]  # tied
    return module


def large_worth(module):
    return float(module(INPUTS).mean() + module.shift + module[1].again.bias[0])


@pytest.mark.parametrize("strategy", ["openai-es", "ars"])
def test_a_large_module_gives_identical_results_on_workers(strategy):
    common = QUICK | {"strategy": strategy, "perturbation": "low-rank:1", "generations": 2}
    here, there = (evolve(large_network(), large_worth, workers=workers, **common) for workers in (0, 2))
    assert 4 * len(here.center) > LARGE  # large enough for shared memory
    assert np.array_equal(here.center, there.center)
    assert np.array_equal(here.best, there.best)
    assert here.eval_return_mean == there.eval_return_mean
    assert here.best_module()(INPUTS).shape == (5, 1)


def test_a_large_modules_parameters_are_not_pickled_with_the_setup():
    module = large_network()
    layout = Layout(module)
    setup = FitnessSetup(module, layout, large_worth, False, NoiseTable(0, 2**10), True)
    arrived = pickle.loads(pickle.dumps(setup))
    assert all(part.device.type == "meta" for part in arrived.module.parameters())
    made = arrived().module
    assert made[1].again is made[2]
    assert made.shift == 0.25
    layout.writer(made)(layout.to_vector(module))
    assert torch.equal(made(INPUTS), module(INPUTS))
    assert all(part.device.type == "cpu" for part in module.parameters())


def test_lambdas_and_local_classes_can_be_sent_to_processes():
    class Local(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    scale = 3.0
    results = [
        evolve(Local(2, 2), lambda m: scale * m(torch.ones(2)).sum(), workers=workers, **QUICK)
        .history[0]
        .return_std
        for workers in (0, 2)
    ]
    assert results[0] > 0
    assert results[1] > 0


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_give_identical_results(workers):
    def seeded(module, seed):
        return -loss(module) + 0.01 * torch.randn((), generator=torch.Generator().manual_seed(seed))

    here = evolve(network(), seeded, **QUICK)
    there = evolve(network(), seeded, workers=workers, engine="threads", **QUICK)
    assert np.array_equal(here.center, there.center)
    assert here.eval_return_mean == there.eval_return_mean


def test_killed_workers_do_not_change_the_result(in_process, tmp_path):
    marks = [tmp_path / "first", tmp_path / "second"]

    def deadly(module):
        for mark in marks:
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return noisy(module)

    result = evolve(network(), deadly, workers=2, **QUICK)
    assert np.array_equal(result.center, in_process.center)


def test_threads_run_fitness_concurrently():
    barrier = threading.Barrier(2, timeout=DEADLINE)

    def meet(module, generation):
        if generation < 2:  # the last evaluation is a single item
            barrier.wait()
        return total(module)

    evolve(network(), meet, workers=2, engine="threads", population=8, generations=2, eval_every=0)


def test_a_failing_thread_ends_the_run_and_not_the_process():
    before = threading.active_count()
    with pytest.raises(EnvironmentFailure, match="fitness raised KeyError"):
        evolve(network(), lambda m: {}["x"], workers=2, engine="threads", **QUICK)
    assert threading.active_count() == before


def test_the_callers_random_state_is_unchanged():
    torch.manual_seed(5)
    np.random.seed(5)
    expected = float(torch.rand(())), float(np.random.rand())
    torch.manual_seed(5)
    np.random.seed(5)
    evolve(nn.Linear(2, 2), noisy_only, **QUICK)
    torch.manual_seed(5)
    assert expected[1] == float(np.random.RandomState(5).rand())
    assert float(torch.rand(())) == expected[0]


def noisy_only(module):
    return torch.randn(()) + np.random.normal()


def test_fitness_receives_seed_and_generation_if_it_declares_them():
    seen = []
    evolve(
        network(),
        lambda m, *, seed, generation: seen.append((seed, generation)) or 0.0 + len(seen),
        population=4,
        generations=2,
        seed=3,
    )
    # Twice 4 members and an evaluation, then the last evaluation.
    assert len({seed for seed, _ in seen}) == len(seen) == 11
    assert [generation for _, generation in seen] == [0] * 5 + [1] * 5 + [2]


# Batches


def batch_loss(members):
    outputs = members(INPUTS.expand(len(members), *INPUTS.shape)).squeeze(2)
    return ((outputs - INPUTS.sum(1)) ** 2).mean(dim=1)


def test_batched_fitness_sees_every_member_once():
    shapes = []

    def fitness(members):
        shapes.append({name: tuple(part.shape) for name, part in members.parameters.items()})
        return batch_loss(members)

    result = evolve(network(), fitness, batched=True, direction="minimize", **QUICK)
    assert shapes[0] == {"0.weight": (8, 4, 3), "0.bias": (8, 4), "2.weight": (8, 1, 4), "2.bias": (8, 1)}
    assert shapes[1]["0.weight"] == (1, 4, 3)  # the unperturbed module
    alone = evolve(network(), loss, direction="minimize", **QUICK)
    assert np.allclose(result.center, alone.center, atol=1e-5)


class Point(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.zeros(2))

    def forward(self):
        return self.x


@pytest.mark.filterwarnings("ignore:members are called one at a time")
def test_a_module_that_returns_a_parameter_learns_the_same_when_batched():
    options = QUICK | {"generations": 20}
    together = evolve(Point(), lambda members: -((members() - 1) ** 2).sum(1), batched=True, **options)
    alone = evolve(Point(), lambda module: float(-((module() - 1) ** 2).sum()), **options)
    np.testing.assert_allclose(together.center, alone.center, atol=1e-5)
    assert together.center.min() > 0.1


def test_batches_give_identical_results_on_workers():
    here, there = (
        evolve(network(), batch_loss, batched=True, batch_size=3, workers=workers, **QUICK)
        for workers in (0, 2)
    )
    assert np.array_equal(here.center, there.center)


@pytest.mark.parametrize(
    ("fitness", "given"),
    [
        (lambda m: m.parameters["0.bias"], r"Tensor of shape \(8, 4\)"),
        (lambda m: m.parameters["0.bias"].sum(), r"Tensor of shape \(\)"),
        (lambda m: [1.0], r"list '\[1.0\]'"),
        (lambda m: ["1.0"] * 8, "list .*"),
        (lambda m: np.ones(8) * 1j, r"ndarray of shape \(8,\)"),
        (lambda m: None, "None"),
    ],
)
def test_batched_fitness_of_a_wrong_shape_is_refused(fitness, given):
    with pytest.raises(
        EnvironmentFailure, match=rf"shape \(8,\).*not {given} \(members 0 to 7, generation 1\)"
    ):
        evolve(network(), fitness, batched=True, **QUICK)


# Stopping and reporting


def test_reaching_the_target_stops_with_the_module_that_reached_it():
    module = network()
    result = evolve(
        module, loss, direction="minimize", target_return=0.5, population=20, generations=200, lr=0.05
    )
    assert result.stop_reason == "solved"
    assert result.eval_return_mean == result.history[-1].eval_return_mean == pytest.approx(worth(module))
    assert result.eval_return_mean <= 0.5 < result.history[-2].eval_return_mean
    assert result.history[-1].update_ratio == 0


def test_target_patience_requires_consecutive_evaluations():
    scores = iter([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    module = nn.Linear(1, 1)
    state = {"calls": 0}

    def fitness(module):
        state["calls"] += 1
        # 4 members, then the evaluation.
        return next(scores) if state["calls"] % 5 == 0 else float(state["calls"] % 5)

    result = evolve(module, fitness, target_return=1.0, target_patience=3, population=4, generations=20)
    assert [row.eval_return_mean for row in result.history] == [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    assert (result.stop_reason, result.generations) == ("solved", 6) == ("solved", len(result.history))


def test_eval_every_sets_how_often_the_center_is_evaluated():
    result = evolve(network(), loss, population=8, generations=5, eval_every=2)
    evaluated = [row.eval_return_mean is not None for row in result.history]
    assert evaluated == [True, False, True, False, True]
    assert math.isfinite(result.eval_return_mean)
    none = evolve(network(), loss, population=8, generations=3, eval_every=0)
    assert [row.eval_return_mean for row in none.history] == [None] * 3
    assert math.isfinite(none.eval_return_mean)


def test_callbacks_get_read_only_views():
    views = []
    module = network()

    def meddle(view):
        views.append(view)
        with pytest.raises(ValueError, match="read-only"):
            view.center[0] = 1
        with pytest.raises(AttributeError):
            view.row.eval_return_mean = 1
        with torch.no_grad():
            view.module()[0].weight.fill_(7)

    result = evolve(module, loss, callbacks=[meddle], **QUICK)
    assert np.array_equal(result.center, evolve(network(), loss, **QUICK).center)
    assert np.array_equal(views[-1].center, result.center)
    assert views[-1].best_return <= result.best_return


class LooksAhead(OpenAIES):
    """A strategy whose members surround a point that is not its center."""

    def members(self):
        made = super().members()
        return replace(made, center=made.center + np.float32(1.0))


def test_the_strategys_center_is_evaluated_even_if_members_surround_another_point():
    module = network()
    before = worth(module)
    result = evolve(module, loss, strategy=LooksAhead, direction="minimize", **QUICK)
    assert result.history[0].eval_return_mean == pytest.approx(before)
    assert 0 < result.history[0].update_ratio < 0.5


def test_an_interrupt_keeps_the_progress():
    module = network()
    calls = []

    def fitness(module):
        calls.append(1)
        if len(calls) == 9 * 2 + 3:  # in the third generation
            raise KeyboardInterrupt
        return loss(module)

    result = evolve(module, fitness, **QUICK)
    assert (result.stop_reason, result.generations) == ("interrupted", 2)
    assert result.eval_return_mean == result.history[-1].eval_return_mean


def test_verbose_prints_progress(capsys):
    evolve(network(), loss, verbose=True, **QUICK)
    out = capsys.readouterr().out
    assert "Sequential: openai-es, population 8, 21 parameters" in out
    assert "generation 3 " in out
    evolve(network(), loss, **QUICK)
    assert capsys.readouterr() == ("", "")


def test_recorders_receive_every_row_and_are_closed():
    recorder = Recording()
    result = evolve(network(), loss, recorders=[recorder], **QUICK)
    assert tuple(recorder.rows) == result.history
    assert recorder.closed == 1


# Saving


def test_saved_parameters_load_into_a_module_of_the_same_architecture(tmp_path):
    path = tmp_path / "deeper" / "evolved"
    result = evolve(network(), loss, run_dir=path, **QUICK)
    loaded = load_evolved(path, network(seed=5))
    assert worth(loaded) == pytest.approx(result.eval_return_mean)
    with pytest.raises(InputError, match="best=True needs a run folder"):
        load_evolved(path / "policy.safetensors", network(), best=True)
    best = load_evolved(path, network(seed=5), best=True)
    assert worth(best) == pytest.approx(result.best_return)


class Two(nn.Module):
    """Two layers of the same shape, created in this order."""

    def __init__(self, order):
        super().__init__()
        for name in order:
            setattr(self, name, nn.Linear(2, 2, bias=False))


def test_parameters_are_matched_by_name_if_their_order_differs(tmp_path):
    found = evolve(Two(["one", "other"]), total, run_dir=tmp_path / "r", **QUICK)
    loaded = load_evolved(tmp_path / "r", Two(["other", "one"]))
    assert torch.equal(loaded.one.weight, found.module.one.weight)
    assert torch.equal(loaded.other.weight, found.module.other.weight)
    with pytest.raises(InputError, match="holds a run whose order_of_parameters is"):
        evolve(Two(["other", "one"]), total, run_dir=tmp_path / "r", resume=True, **QUICK)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_resumed_run_is_identical_to_an_uninterrupted_one(tmp_path, name):
    path = tmp_path / "evolved"
    options = {"strategy": name, "population": 10, "run_dir": path, "resume": True}
    module = network()
    evolve(module, noisy, generations=3, **options)
    resumed = evolve(network(), noisy, generations=6, **options)
    whole = evolve(network(), noisy, strategy=name, population=10, generations=6)
    assert np.array_equal(resumed.center, whole.center)
    assert np.array_equal(resumed.best, whole.best)
    assert (resumed.best_return, resumed.eval_return_mean) == (whole.best_return, whole.eval_return_mean)
    for column in ("eval_return_mean", "episodes"):
        assert resumed.history[column] == whole.history[column]


def test_a_solved_run_resumes_from_where_it_stopped(tmp_path):
    path = tmp_path / "evolved"
    options = {"direction": "minimize", "population": 20, "generations": 200, "lr": 0.05, "run_dir": path}
    first = evolve(network(), loss, target_return=0.5, **options)
    again = evolve(network(), loss, target_return=0.5, resume=True, **options)
    assert (again.stop_reason, again.generations) == ("solved", first.generations)
    assert [row.episodes for row in again.history] == [row.episodes for row in first.history]
    further = evolve(network(), loss, target_return=0.4, resume=True, **options)
    whole = evolve(network(), loss, target_return=0.4, **(options | {"run_dir": None}))
    assert np.array_equal(further.center, whole.center)


def test_resuming_with_different_settings_is_refused(tmp_path):
    path = tmp_path / "evolved"
    evolve(network(), loss, run_dir=path, **QUICK)
    with pytest.raises(InputError, match="whose seed is 0, not 1"):
        evolve(network(), loss, run_dir=path, resume=True, seed=1, **QUICK)
    with pytest.raises(InputError, match="whose strategy is openai-es, not snes"):
        evolve(network(), loss, run_dir=path, resume=True, strategy="snes", **QUICK)


def test_loading_into_a_different_module_or_from_a_bad_file_is_refused(tmp_path):
    path = tmp_path / "evolved"
    evolve(network(), loss, run_dir=path, **QUICK)
    with pytest.raises(InputError, match=r"parameter '0.bias' has shape \[4\] there and None here"):
        load_evolved(path, nn.Linear(3, 1))
    policy = path / "policy.safetensors"
    tensors, state = read(policy)
    write(tmp_path / "other", tensors, state | {"kind": "other"})
    with pytest.raises(InputError, match="other is not a module that evolve saved"):
        load_evolved(tmp_path / "other", network())
    policy.write_bytes(policy.read_bytes()[:-1])
    with pytest.raises(InputError, match="is damaged"):
        load_evolved(path, network())
    with pytest.raises(InputError, match=r"file .* does not exist"):
        load_evolved(tmp_path / "none", network())
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file cannot be written \(File exists\)"):
        evolve(network(), loss, run_dir=tmp_path / "file", **QUICK)


# Unusual modules


def test_buffers_are_restored_after_fitness_changes_them():
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    before = copy.deepcopy(dict(module.named_buffers()))
    means = []

    def fitness(module):
        means.append(float(module[1].running_mean.abs().sum()))
        return loss(module)  # in training mode, so running statistics move

    evolve(module, fitness, **QUICK)
    assert set(means) == {0.0}
    assert all(torch.equal(before[name], buffer) for name, buffer in module.named_buffers())


class Remembers(nn.Module):
    """A recurrent module whose hidden state is an attribute, not a buffer."""

    def __init__(self):
        super().__init__()
        self.part, self.calls, self.hidden = nn.Linear(3, 3), 0, torch.zeros(3)

    def forward(self, x):
        self.calls += 1
        self.hidden = torch.tanh(self.part(x) + 0.9 * self.hidden) / self.calls
        self.made_since = self.hidden
        return self.hidden


class RemembersPair(Remembers):
    """The same with a pair that is None at first, and with a read-only view."""

    def __init__(self):
        super().__init__()
        self.pair, self.mask = None, torch.ones(1).expand(3)
        self.hidden = torch.zeros(3)

    def forward(self, x):
        self.calls += 1
        hidden, count = (torch.zeros(3), 0) if self.pair is None else self.pair
        found = torch.tanh(self.part(x) + 0.9 * hidden * self.mask) / (count + 1)
        self.pair = found, count + 1
        self.made_since = found
        return found


def remembered(module):
    seen = torch.ones(3) if isinstance(module, nn.Module) else torch.ones(len(module), 3)
    for _ in range(3):
        given = module(seen)
    return -((given - 0.3) ** 2).sum(dim=-1)


@pytest.mark.filterwarnings("ignore:.*one at a time")
@pytest.mark.parametrize("kind", [Remembers, RemembersPair])
def test_attributes_set_by_one_member_do_not_reach_the_next(kind):
    torch.manual_seed(0)
    first = kind()
    start = first.state_dict()
    found = []
    for options in ({}, {"workers": 2}, {"batched": True}, {"batched": True, "batch_size": 3, "workers": 2}):
        module = kind()
        module.load_state_dict(start)
        evolved = escalade.evolve(
            module, remembered, **{"workers": 0} | options, population=8, generations=4, verbose=False
        )
        found.append(evolved.center.tobytes())
        assert (module.calls, module.hidden.tolist()) == (0, [0, 0, 0])
        assert not hasattr(module, "made_since")
        assert getattr(module, "pair", None) is None
    assert found[0] == found[1]
    assert found[2] == found[3]
    np.testing.assert_allclose(*(np.frombuffer(bits, np.float32) for bits in found[1:3]), rtol=1e-4)


def test_frozen_parameters_are_untouched():
    module = network()
    module[0].requires_grad_(False)
    before = module[0].weight.clone()
    result = evolve(module, loss, **QUICK)
    assert torch.equal(before, module[0].weight)
    assert len(result.center) == 5
    assert not module[0].weight.requires_grad
    assert module[2].weight.requires_grad


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(3, 3, bias=False)
        self.decode = nn.Linear(3, 3, bias=False)
        self.decode.weight = self.encode.weight

    def forward(self, x):
        return self.decode(torch.tanh(self.encode(x)))


@pytest.mark.parametrize("workers", [0, 1])
def test_tied_parameters_are_perturbed_once_and_stay_tied(workers):
    module = Tied()

    def fitness(module):
        assert module.encode.weight is module.decode.weight
        return module(INPUTS).sum()

    result = evolve(module, fitness, workers=workers, **QUICK)
    assert len(result.center) == 9
    assert module.encode.weight is module.decode.weight
    assert np.array_equal(module.decode.weight.detach().numpy().ravel(), result.center)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_float16_bfloat16_and_float64_are_evolved_in_float32_and_cast(kind, tmp_path):
    module = network().to(kind)
    seen = set()

    def fitness(module):
        seen.add(module[0].weight.dtype)
        return -(module(INPUTS.to(kind)) ** 2).mean()

    path = tmp_path / "evolved"
    result = evolve(module, fitness, run_dir=path, **QUICK)
    assert seen == {kind}
    assert result.center.dtype == np.float32
    assert module[0].weight.dtype == kind
    assert load_evolved(path, network().to(kind))[0].weight.dtype == kind


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_module_on_a_gpu_stays_there():
    module = network().cuda()
    result = evolve(module, lambda m: -(m(INPUTS.cuda()) ** 2).mean(), **QUICK)
    assert module[0].weight.is_cuda
    assert math.isfinite(result.eval_return_mean)


@pytest.mark.parametrize(
    "number",
    [2, True, 1.5, np.float32(2), np.array([2.0]), torch.tensor(3), torch.ones(1, 1, requires_grad=True)],
)
def test_fitness_may_be_any_kind_of_number(number):
    result = evolve(nn.Linear(1, 1), lambda m: number, population=4, generations=1)
    assert result.eval_return_mean == (number if isinstance(number, int | float) else number.item())


# Refused arguments

nan, inf = float("nan"), float("inf")


class Wordless(Exception):
    def __str__(self):
        raise ValueError


def wordless(module):
    raise Wordless


@pytest.mark.parametrize(
    ("fitness", "message"),
    [
        (lambda m: None, r"not None \(member 0, generation 1\)"),
        (lambda m: "3", r"not str '3' \(member 0, generation 1\)"),
        (lambda m: 1j, r"not complex '1j' \(member 0"),
        (lambda m: torch.zeros(2), r"not Tensor of shape \(2,\) \(member 0"),
        (lambda m: np.zeros((2, 1)), r"not ndarray of shape \(2, 1\) \(member 0"),
        (
            lambda m: nan,
            r"all 8 calls of fitness of generation 1 failed or had .* \(the first: member 0 returned",
        ),
        (
            lambda m: list(m)[9],
            r"fitness raised IndexError: .* \(member 0, generation 1; line \d+ of test_evolve.py",
        ),
        (wordless, r"fitness raised Wordless: <exception str\(\) failed> \(member 0, generation 1"),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_bad_fitness_errors_name_member_and_generation(fitness, message, workers):
    with pytest.raises(EnvironmentFailure, match=message) as caught:
        evolve(network(), fitness, workers=workers, **QUICK)
    assert "\n" not in str(caught.value)


def test_bad_fitness_errors_name_the_unperturbed_module():
    calls = []

    def fitness(module):
        calls.append(1)
        return None if len(calls) == 9 else 1.0 * len(calls)

    with pytest.raises(EnvironmentFailure, match="the unperturbed module, generation 1"):
        evolve(network(), fitness, **QUICK)


def test_members_with_nonfinite_fitness_rank_last():
    calls = []

    def fitness(module):
        calls.append(1)
        return nan if len(calls) in (3, 12) else loss(module)

    with pytest.warns(RuntimeWarning, match="generation 1: member 2 returned nan") as caught:
        result = evolve(network(), fitness, **QUICK)
    assert len(caught) == 1
    assert [row.nonfinite for row in result.history] == [1, 1, 0]
    assert math.isfinite(result.best_return)
    assert np.isfinite(result.center).all()


def frozen():
    return network().requires_grad_(False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (nn.Tanh, "module Tanh has no parameters to evolve"),
        (frozen, "only frozen parameters"),
        (lambda: [1, 2], "must be a torch.nn.Module, not a list"),
        (lambda: nn.LazyLinear(2), "'weight' has no numbers yet"),
        (lambda: nn.Linear(2, 2, dtype=torch.complex64), "'weight' is torch.complex64"),
    ],
)
def test_modules_that_cannot_evolve_are_refused(make, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own about lazy modules
        module = make()
    with pytest.raises(InputError, match=message):
        evolve(module, total, **QUICK)


def test_nan_parameters_are_refused():
    module = network()
    with torch.no_grad():
        module[2].bias.fill_(nan)
    with pytest.raises(InputError, match=r"parameter '2.bias' holds NaN"):
        evolve(module, total, **QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "opnai-es"}, "did you mean openai-es"),
        ({"strategy": 3}, "unknown `strategy` 3: it must be one of"),
        (
            {"strategy": "ars:top_directions=2"},
            "pass 'ars' and the options as arguments, or a .*partial of ARS",
        ),
        ({"strategy": lambda x0, **k: x0}, "returned a ndarray"),
        ({"strategy": lambda x0, **k: SNES(np.zeros(3))}, "has 3 parameters, not 21"),
        ({"strategy": lambda x0: x0}, "takes no population; make it accept population="),
        ({"strategy": "cma-es", "lr": 0.1}, "strategy cma-es takes no lr; remove it"),
        ({"strategy": "cem", "strategy_options": {"elites": 3}}, "takes no elites; did you mean elite"),
        ({"strategy": PersistentES}, "strategy PersistentES needs windows; pass it in strategy_options"),
        ({"population": 7}, "population 7 is odd"),
        ({"sigma": -1}, "sigma -1"),
        ({"lr": "fast"}, "lr 'fast' is neither a number nor"),
        ({"shaping": "rank"}, "unknown `shaping` 'rank'"),
        ({"direction": "up"}, "direction 'up'"),
        ({"generations": -1}, "generations -1"),
        ({"seconds": 0}, "seconds 0"),
        ({"target_return": nan}, "target_return must be a number"),
        ({"target_return": 1.0, "eval_every": 0}, "set eval_every"),
        ({"target_patience": 0}, "target_patience 0"),
        ({"eval_every": -1}, "eval_every -1"),
        ({"workers": -1}, "workers -1"),
        ({"engine": "thread"}, "did you mean threads"),
        ({"batch_size": 4}, "batch_size needs batched=True"),
        ({"batched": True, "batch_size": 0}, "batch_size 0"),
        ({"batched": True, "workers": 2}, "has no effect; set batch_size"),
        ({"resume": True}, "needs the folder of the run"),
    ],
)
def test_wrong_arguments_are_named_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as caught:
        evolve(network(), total, **(QUICK | {"lr": None} | options))
    assert "\n" not in str(caught.value)


def test_unpicklable_fitness_is_refused_with_a_fix():
    lock = threading.Lock()
    with pytest.raises(InputError, match=r"cannot be sent to worker processes .* `engine=threads`"):
        evolve(network(), lambda m: total(m) if lock else 0, workers=1, **QUICK)


@pytest.mark.parametrize("fitness", [3, network()])
def test_an_object_that_is_not_a_fitness_function_is_refused(fitness):
    with pytest.raises(InputError, match="fitness"):
        evolve(network(), fitness, **QUICK)


def test_the_callers_torch_thread_count_does_not_change_the_result():
    def run(threads):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            module = torch.nn.Linear(400, 400)
            with torch.no_grad():
                module.weight.fill_(0.1), module.bias.zero_()
            options = {"population": 4, "generations": 2, "workers": 0, "strategy": "pgpe"}
            found = escalade.evolve(module, lambda m: -float(m.weight[0].abs().sum()), **options)
            assert torch.get_num_threads() == threads
            return found.center
        finally:
            torch.set_num_threads(before)

    first = run(1)
    for threads in (2, 3, 4):
        np.testing.assert_array_equal(run(threads), first)


# Regressions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recorders": ["nope"]}, "unknown `recorders` 'nope'"),
        ({"callbacks": print}, "`callbacks` must be a list of functions"),
        ({"strategy_options": {"sigma": 0.5}}, "`strategy_options` sigma is an option of its own"),
        ({"strategy_options": {"perturbation": 3}}, "`strategy_options` perturbation is an option"),
    ],
)
def test_a_refused_call_leaves_no_folder(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        evolve(network(), total, run_dir=tmp_path / "r", **(QUICK | options))
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("workers", [0, 2])
def test_changes_to_frozen_parameters_do_not_reach_the_next_member(workers):
    def fitness(module):
        with torch.no_grad():
            module.bias += 1
        return total(module)

    def module():
        made = nn.Linear(2, 1)
        with torch.no_grad():
            made.weight.fill_(0.5), made.bias.zero_()
        made.bias.requires_grad_(False)
        return made

    result = evolve(module(), fitness, workers=workers, engine="threads", **QUICK)
    assert max(row.return_max for row in result.history) < 4  # 1 from the bias, plus the weights


def test_resuming_a_run_keeps_its_rows(tmp_path):
    options = {"population": 4, "run_dir": tmp_path / "r"}
    evolve(network(), total, target_return=-100.0, generations=6, **options)
    evolve(network(), total, target_return=1e6, generations=0, resume=True, **options)
    last = evolve(network(), total, target_return=-100.0, generations=6, resume=True, **options)
    assert (last.stop_reason, len(last.history), last.summary["episodes"]) == ("solved", 1, 4)


def frozen(seed=0):
    module = network(seed)
    module[0].requires_grad_(False)
    return module


def with_buffer(number=0.0):
    module = network()
    module.register_buffer("scale", torch.full((3,), number))
    return module


@pytest.mark.parametrize(
    ("first", "other", "same", "named"),
    [
        (frozen, lambda: frozen(1), frozen, "frozen_and_buffers"),
        (with_buffer, lambda: with_buffer(1.0), with_buffer, "frozen_and_buffers"),
        (network, lambda: network().bfloat16(), network, "types"),
    ],
)
def test_resume_rejects_changed_frozen_parameters_buffers_or_types(first, other, same, named, tmp_path):
    options = QUICK | {"run_dir": tmp_path / "r"}
    evolve(first(), total, **options)
    with pytest.raises(InputError, match=f"holds a run whose {named} is"):
        evolve(other(), total, resume=True, **options)
    assert evolve(same(), total, resume=True, **options).generations == 3


def test_an_option_already_fixed_by_a_partial_is_refused(tmp_path):
    fixed = partial(OpenAIES, lr=0.1, sigma=0.3)
    with pytest.raises(InputError, match=r"strategy .* has lr already; set it in one place only"):
        evolve(network(), total, strategy=fixed, lr=0.001)
    with pytest.raises(InputError, match="has momentum already"):
        evolve(
            network(),
            total,
            strategy=partial(OpenAIES, optimizer="sgd", momentum=0.5),
            strategy_options={"momentum": 0.1},
        )
    result = evolve(network(), total, strategy=fixed, generations=1, run_dir=tmp_path / "r")
    assert result.history[0].sigma == 0.3
    assert "sigma = 0.1" not in (tmp_path / "r" / "config.toml").read_text()


@pytest.mark.parametrize(
    "options", [{"step_timeout": 60.0}, {"device": "cpu", "strategy": "cma-es"}, {"engine": "threads"}]
)
def test_a_refused_call_leaves_the_module_unchanged(options):
    module = network().double()
    with torch.no_grad():
        module[0].weight[0, 0] = 1 / 3
    if "engine" in options:
        options = options | {"workers": 1, "step_timeout": 60.0}
    with pytest.raises(InputError):
        evolve(module, total, **options)
    assert float(module[0].weight[0, 0].detach()) == 1 / 3


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"perturbation": "low-rank:1"},
        {"batched": True, "perturbation": "low-rank:1"},
        {"strategy": "cma-es", "lr": None},
        {"device": "cpu", "batched": True},
    ],
)
def test_torchs_default_device_is_not_used(options):
    """``meta`` replaces a GPU here: values placed on it are lost."""

    def fitness(given):
        if options.get("batched"):
            return given(INPUTS.expand(len(given), -1, -1)).mean(dim=(1, 2))
        return given(INPUTS).mean()

    expected = evolve(network(), fitness, **QUICK | options).center
    module = network()
    with torch.device("meta"):
        found = evolve(module, fitness, **QUICK | options).center
    assert np.array_equal(found, expected)


class Double(OpenAIES):
    """A strategy whose center is float64."""

    def __init__(self, x0, population, **options):
        super().__init__(np.asarray(x0, np.float64), population, **options)


@pytest.mark.parametrize("eval_every", [1, 0])  # the best is a center or a member
def test_a_float64_center_is_kept_and_resumed(eval_every, tmp_path):
    options = QUICK | {"strategy": Double, "eval_every": eval_every, "run_dir": tmp_path / "r"}
    calls = []

    def counted(module):
        calls.append(1)
        return total(module)

    evolve(network(), counted, **options)
    calls.clear()
    rest = evolve(network(), counted, resume=True, **options | {"generations": 4})
    assert len(calls) <= 8 + 2  # one generation and the center
    assert rest.best.dtype == rest.center.dtype == np.float64


def test_a_callback_that_raises_loses_no_generation(tmp_path):
    def fail(view):
        if view.row.generation == 2:
            raise LookupError("no light")

    with pytest.raises(LookupError, match="no light"):
        evolve(network(), total, callbacks=[fail], run_dir=tmp_path / "r", **QUICK)
    resumed = evolve(network(), total, run_dir=tmp_path / "r", resume=True, **QUICK)
    whole = evolve(network(), total, **QUICK)
    assert np.array_equal(resumed.center, whole.center)
    assert len(resumed.history) == 3


def test_an_interrupt_after_the_last_generation_loses_nothing(tmp_path, monkeypatch):
    save = FitnessObjective.save_module

    def interrupted(objective, strategy):
        signal.raise_signal(signal.SIGINT)
        save(objective, strategy)

    monkeypatch.setattr(FitnessObjective, "save_module", interrupted)
    result = evolve(network(), total, run_dir=tmp_path / "r", **QUICK)
    assert result.stop_reason == "generations"
    assert {"policy.safetensors", "summary.json"} <= set(os.listdir(tmp_path / "r"))


def test_evolve_refuses_to_resume_a_run_of_train(tmp_path):
    options = {"population": 4, "workers": 0, "generations": 1, "verbose": False, "preset": None}
    run = escalade.train("CartPole-v1", run_dir=tmp_path / "r", **options)
    with pytest.raises(InputError, match=r"a run of escalade.train; continue it with escalade.resume"):
        evolve(network(), total, run_dir=run, resume=True, **QUICK)


def test_results_can_be_used_as_paths_of_their_run_folders(tmp_path):
    result = evolve(network(), total, run_dir=tmp_path / "r", **QUICK)
    assert np.array_equal(load_evolved(result, network(5))[0].bias.detach(), result.module[0].bias.detach())
    with pytest.raises(InputError, match="the run has no folder"):
        os.fspath(evolve(network(), total, **QUICK))


LOW_RANK = QUICK | {"perturbation": "low-rank:1", "direction": "minimize"}


def wide():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 1))


def test_batched_low_rank_members_match_single_ones_and_are_identical_on_workers():
    here, there = (
        evolve(wide(), batch_loss, batched=True, batch_size=3, workers=workers, **LOW_RANK)
        for workers in (0, 2)
    )
    assert np.array_equal(here.center, there.center)
    alone = evolve(wide(), loss, **LOW_RANK)
    np.testing.assert_allclose(here.center, alone.center, atol=1e-4)


def test_a_resumed_low_rank_run_is_identical_to_an_uninterrupted_one(tmp_path):
    whole = evolve(wide(), batch_loss, batched=True, **LOW_RANK | {"generations": 6})
    for generations in (2, 6):
        found = evolve(
            wide(),
            batch_loss,
            batched=True,
            run_dir=tmp_path / "run",
            resume=generations > 2,
            **LOW_RANK | {"generations": generations},
        )
    assert np.array_equal(found.center, whole.center)


def test_the_evaluated_center_is_the_center_of_the_population(monkeypatch):
    jobs = []

    def job(*given):
        jobs.append(FitnessJob(*given))
        return jobs[-1]

    monkeypatch.setattr("escalade.training.fitness_objective.FitnessJob", job)
    evolve(network(), total, **QUICK)
    assert [job.center is job.population.center for job in jobs if job.population] == [True] * 3


def test_low_rank_noise_is_refused_for_strategies_that_do_not_support_it():
    with pytest.raises(InputError, match="SNES does not work with low-rank noise"):
        evolve(wide(), loss, strategy="snes", **LOW_RANK)
    with pytest.raises(InputError, match="unknown `perturbation` 'low'"):
        evolve(wide(), loss, **LOW_RANK | {"perturbation": "low"})


@pytest.mark.parametrize(("last", "generation"), [(100.0, 2), (-1.0, 1)])
def test_the_best_of_a_run_may_be_its_last_evaluation(last, generation):
    def fitness(module):
        calls.append(module)
        # Twice 8 members and the center, then the last evaluation.
        return last if len(calls) == 19 else float(len(calls))

    calls = []
    result = evolve(nn.Linear(2, 1), fitness, population=8, generations=2)
    assert result.summary["best_generation"] == generation
    assert np.array_equal(result.best, result.center) == (generation == 2)


def slower(rate, generation):
    return rate / (1 + generation)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"lr": partial(slower, 0.1)}, {"lr": partial(slower, 0.5)}),
        (
            {"strategy": "snes", "sigma": np.full(21, 0.1)},
            {"strategy": "snes", "sigma": np.array([0.1] * 10 + [0.1000000001] + [0.1] * 10)},
        ),
    ],
)
def test_resume_rejects_changed_schedules_and_arrays(first, then, tmp_path):
    options = {"population": 8, "generations": 2, "run_dir": tmp_path / "run"}
    evolve(network(), total, **options | first)
    (name,) = {*then} - {"strategy"}
    with pytest.raises(InputError, match=name):
        evolve(network(), total, resume=True, **options | then | {"generations": 3})
    evolve(network(), total, resume=True, **options | first | {"generations": 3})


def named_fitness(module, times=1.0):
    return -times * float(module.weight.square().sum())


def test_resume_rejects_a_different_fitness_function(tmp_path):
    options = {"population": 4, "run_dir": tmp_path / "run", "seed": 1, "verbose": False}
    escalade.evolve(nn.Linear(2, 1), partial(named_fitness, times=2.0), generations=1, **options)
    with pytest.raises(InputError, match=r"whose fitness is named_fitness, not .*<lambda>"):
        escalade.evolve(nn.Linear(2, 1), lambda module: 1.0, generations=2, resume=True, **options)
    found = escalade.evolve(nn.Linear(2, 1), named_fitness, generations=2, resume=True, **options)
    assert found.summary["generations"] == 2
