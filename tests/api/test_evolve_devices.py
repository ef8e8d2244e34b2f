"""escalade.evolve on a device: placement, determinism, half precision, and refused options."""

import numpy as np
import pytest
import torch
from tests.devices import PLACE
from torch import nn

from escalade import InputError, evolve
from escalade.perturbation.device import Counters, DeviceNoise, DevicePopulation
from escalade.policies.population.layout import Layout

INPUTS = torch.linspace(-1, 1, 60, device=PLACE).reshape(5, 12)
TARGETS = INPUTS[:, :1] * 2
OPTIONS = {
    "population": 20,
    "sigma": 0.1,
    "lr": 0.05,
    "generations": 3,
    "direction": "minimize",
    "device": str(PLACE),
}


def network(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 30), nn.Tanh(), nn.Linear(30, 1)).to(PLACE, dtype)


def loss(module):
    kind = next(module.parameters()).dtype
    return ((module(INPUTS.to(kind)).float() - TARGETS) ** 2).mean()


def losses(members):
    outputs = members(INPUTS.expand(len(members), -1, -1))
    return ((outputs - TARGETS) ** 2).mean(dim=(1, 2))


@pytest.mark.parametrize("perturbation", ["full", "low-rank:1", "low-rank:4"])
@pytest.mark.parametrize("strategy", ["openai-es", "ars"])
def test_a_module_learns_with_noise_generated_on_the_device(strategy, perturbation):
    module = network()
    before = float(loss(module).detach())
    options = OPTIONS | {"generations": 60, "strategy": strategy, "perturbation": perturbation}
    result = evolve(module, loss, **options)
    assert float(loss(module).detach()) == pytest.approx(result.eval_return_mean)
    assert result.eval_return_mean < 0.2 * before
    assert result.summary["device"].startswith(PLACE.type)


@pytest.mark.parametrize("perturbation", ["full", "low-rank:1"])
def test_the_same_seed_gives_identical_results_and_a_different_seed_does_not(perturbation):
    options = OPTIONS | {"perturbation": perturbation}
    first, again = (evolve(network(), loss, **options).center for _ in range(2))
    assert np.array_equal(first, again)
    other = evolve(network(), loss, **options, seed=1).center
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, evolve(network(), loss, **options | {"device": None}).center)


@pytest.mark.parametrize(
    "own",
    [
        {"perturbation": "full"},
        {"perturbation": "low-rank:1"},
        {"strategy": "snes"},
        {"strategy": "sep-cma-es", "lr": None},
    ],
)
def test_batched_members_equal_those_evaluated_one_at_a_time(own):
    options = OPTIONS | own
    alone = evolve(network(), loss, **options)
    together = evolve(network(), losses, batched=True, **options)
    np.testing.assert_allclose(together.center, alone.center, atol=1e-4)


@pytest.mark.parametrize(
    "own",
    [
        *({"perturbation": "low-rank:2", "optimizer": name} for name in ("adam", "sgd", "clipup")),
        {"strategy": "sep-cma-es", "lr": None},
    ],
)
def test_a_resumed_run_is_identical_to_an_uninterrupted_one(tmp_path, own):
    options = OPTIONS | own
    whole = evolve(network(), loss, **options | {"generations": 6})
    evolve(network(), loss, run_dir=tmp_path / "run", **options)
    rest = evolve(network(), loss, run_dir=tmp_path / "run", resume=True, **options | {"generations": 6})
    assert np.array_equal(rest.center, whole.center)
    assert rest.best_return == whole.best_return
    with pytest.raises(InputError, match="device"):
        evolve(network(), loss, run_dir=tmp_path / "run", resume=True, **options | {"device": None})


@pytest.mark.parametrize("perturbation", ["full", "low-rank:1"])
def test_half_precision_weights_are_cast_from_a_float32_center(perturbation):
    """Steps far below the resolution of bfloat16 add up, and members leave no trace."""
    module, seen = network(torch.bfloat16), []
    start = torch.cat([part.detach().float().flatten().cpu() for part in module.parameters()])

    def fitness(module):
        seen.append(torch.cat([part.detach().flatten().cpu() for part in module.parameters()]))
        return loss(module)

    options = OPTIONS | {"sigma": 0.01, "lr": 1e-5, "eval_every": 1, "population": 4}
    result = evolve(module, fitness, perturbation=perturbation, optimizer="sgd", **options)
    center = torch.from_numpy(result.center)
    assert all(part.dtype == torch.bfloat16 for part in module.parameters())
    assert 0 < float((center - start).abs().max()) < 1e-3
    assert not torch.equal(center, center.bfloat16().float())
    assert torch.equal(
        torch.cat([part.detach().flatten().cpu() for part in module.parameters()]), center.bfloat16()
    )
    # The first member is the center plus the noise of address (seed 0, generation 0, number 0), rounded once.
    layout = Layout(network(torch.bfloat16))
    rank = 0 if perturbation == "full" else 1
    source = DeviceNoise(Counters(PLACE), rank, layout.held_shapes)
    expected = torch.empty(len(start), device=PLACE)
    DevicePopulation(start.to(PLACE), 0.01, source, 0, 0, 4).write(0, expected)
    assert torch.equal(seen[0], expected.bfloat16().cpu())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 2}, f"device '{PLACE}' computes in this process; remove workers=2"),
        ({"strategy": "xnes", "lr": None}, "XNES does not work with device"),
        ({"strategy": "cma-es", "lr": None}, "CMAES does not work with device"),
        ({"device": "meta"}, "device 'meta' cannot be used here"),
        ({"device": "cuda:77"}, "device 'cuda:77' cannot be used here"),
        ({"device": "toaster"}, "device 'toaster' cannot be used here"),
    ],
)
def test_options_incompatible_with_a_device_are_refused_in_one_line(options, message):
    module = network()
    before = [part.detach().clone() for part in module.parameters()]
    with pytest.raises(InputError) as problem:
        evolve(module, loss, **OPTIONS | options)
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)
    assert all(torch.equal(*pair) for pair in zip(before, module.parameters(), strict=True))
