"""ClipUp as an optimiser of its own, on any torch parameters."""

import copy

import pytest
import torch

from escalade.errors import InputError
from escalade.strategies import ClipUp


def vector(*values):
    return torch.tensor(values, requires_grad=True)


def test_one_step_has_the_length_lr_whatever_the_gradient():
    for size in (1e-6, 1.0, 1e6):
        x = vector(1.0, 1.0)
        x.grad = size * torch.tensor([3.0, 4.0])
        ClipUp([x], lr=0.5).step()
        torch.testing.assert_close(x.detach(), torch.tensor([1 - 0.3, 1 - 0.4]))


def test_speed_rises_with_momentum_up_to_its_limit():
    x = vector(0.0)
    optimizer = ClipUp([x], lr=0.1, momentum=0.5, max_speed=0.16)
    places = []
    for _ in range(4):
        x.grad = torch.tensor([-7.0])
        optimizer.step()
        places.append(x.item())
    assert places == pytest.approx([0.1, 0.25, 0.41, 0.57])


def test_max_speed_is_twice_lr_unless_given_and_follows_it():
    x = vector(0.0)
    optimizer = ClipUp([x], lr=0.1)
    for _ in range(50):
        x.grad = torch.tensor([1.0])
        optimizer.step()
    before = x.item()
    optimizer.param_groups[0]["lr"] = 0.01
    x.grad = torch.tensor([1.0])
    optimizer.step()
    assert before - x.item() == pytest.approx(0.02, rel=1e-4)


def test_the_norm_is_that_of_all_parameters_of_the_group_together():
    a, b, unused = vector(0.0), torch.zeros(1, 2, requires_grad=True), vector(5.0)
    a.grad, b.grad = torch.tensor([2.0]), torch.tensor([[1.0, 2.0]])
    ClipUp([a, b, unused], lr=0.3).step()
    torch.testing.assert_close(a.detach(), torch.tensor([-0.2]))
    torch.testing.assert_close(b.detach(), torch.tensor([[-0.1, -0.2]]))
    assert unused.item() == 5.0


def test_a_zero_gradient_only_slows_down():
    x = vector(0.0, 0.0)
    optimizer = ClipUp([x], lr=1.0, momentum=0.5)
    x.grad = torch.zeros(2)
    optimizer.step()
    assert x.tolist() == [0.0, 0.0]
    x.grad = torch.tensor([1.0, 0.0])
    optimizer.step()
    x.grad = torch.zeros(2)
    optimizer.step()
    assert x.tolist() == [-1.5, 0.0]


def test_it_trains_a_module_and_returns_the_closures_loss():
    torch.manual_seed(0)
    module, inputs = torch.nn.Linear(3, 1), torch.randn(64, 3)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [0.5]])
    optimizer = ClipUp(module.parameters(), lr=0.02)

    def closure():
        optimizer.zero_grad()
        loss = ((module(inputs) - targets) ** 2).mean()
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    for _ in range(200):
        optimizer.step(closure)
    assert closure().item() < 0.01 * first


def test_state_dict_goes_on_bit_for_bit():
    def steps(x, optimizer, seeds):
        for seed in seeds:
            x.grad = torch.randn(5, generator=torch.Generator().manual_seed(seed))
            optimizer.step()

    x = torch.zeros(5, requires_grad=True)
    optimizer = ClipUp([x], lr=0.3, momentum=0.8, max_speed=0.5)
    steps(x, optimizer, range(4))
    resumed_x = x.detach().clone().requires_grad_()
    resumed = ClipUp([resumed_x], lr=9.0)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert resumed.param_groups[0]["max_speed"] == 0.5
    steps(x, optimizer, range(4, 8))
    steps(resumed_x, resumed, range(4, 8))
    assert torch.equal(x, resumed_x)


@pytest.mark.parametrize(
    "keywords",
    [
        {"lr": 0.0},
        {"lr": -1.0},
        {"lr": float("nan")},
        {"momentum": 1.0},
        {"momentum": -0.1},
        {"max_speed": 0.0},
    ],
)
def test_impossible_settings_are_refused(keywords):
    with pytest.raises(InputError, match=next(iter(keywords))):
        ClipUp([vector(0.0)], **keywords)
