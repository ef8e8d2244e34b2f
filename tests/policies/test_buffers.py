"""Values stored by a module between calls are read with built-in methods of Python's and torch's types."""

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
    """Stores a value, and replaces it by an equal one in each call if ``renewed``."""

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
    """A tuple with its own ``__len__``, like e3nn's."""

    def __len__(self):
        raise NotImplementedError


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("renewed", [True, False])
def test_tuple_attribute_may_override_its_length(renewed):
    found = evolve(Holds(lambda: Irreps((1, 2)), renewed), fitness, generations=2, batched=True)
    assert found.generations == 2


def test_module_that_cannot_be_copied_is_rejected_in_one_line():
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
def test_changed_value_is_detected_and_restored(before, after, changed):
    module = Holds(lambda: before)
    kept = Snapshot(module)
    module.value = after
    assert kept.changed() is changed
    kept.restore()
    assert module.value is before
