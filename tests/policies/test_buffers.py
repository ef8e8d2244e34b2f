"""What a module keeps between calls is read by the methods of Python's own types and of torch's."""

import pytest
import torch
from torch import nn

from escalade import InputError, evolve
from escalade.policies.population.buffers import Snapshot


class Image(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


class Holds(nn.Module):
    """Holds a value, and makes an equal one in each call if ``renewed``."""

    def __init__(self, make, renewed=False):
        super().__init__()
        self.part, self.make, self.renewed = nn.Linear(3, 1), make, renewed
        self.value = make()

    def forward(self, x):
        if self.renewed:
            self.value = self.make()
        return self.part(x)


def fitness(members):
    return members(torch.ones(len(members), 3))[:, 0]


class Irreps(tuple):
    """Counts itself in its own way, as e3nn's does."""

    def __len__(self):
        raise NotImplementedError


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("renewed", [True, False])
def test_a_modules_tuple_may_have_a_length_of_its_own(renewed):
    found = evolve(Holds(lambda: Irreps((1, 2)), renewed), fitness, generations=2, batched=True)
    assert found.generations == 2


def test_a_module_that_cannot_be_copied_is_refused_in_one_line():
    with pytest.raises(InputError, match="module Holds cannot be copied"):
        evolve(Holds(lambda: torch.ones(2).as_subclass(Image)), fitness, generations=1, batched=True)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("a", "b", True),
        (1.0, 1.0, False),
        (1, True, True),
        (None, 0, True),
        ((1, None), (1, None), False),
        ((1, 2), (1, 2, 3), True),
    ],
)
def test_a_changed_value_is_noticed_and_put_back(before, after, changed):
    module = Holds(lambda: before)
    kept = Snapshot(module)
    module.value = after
    assert kept.changed() is changed
    kept.restore()
    assert module.value is before
