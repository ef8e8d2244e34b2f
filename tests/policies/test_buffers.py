"""What a module keeps between calls is read by the methods of Python's own types and of torch's."""

import pytest
import torch
from torch import nn

from escalade import InputError, evolve
from escalade.policies.population.buffers import Kept


def refused(*arguments):
    raise NotImplementedError


class Irreps(tuple):
    """A tuple that counts itself in its own way, as e3nn's does."""

    __slots__ = ()
    __len__ = __iter__ = __eq__ = __ne__ = refused
    __hash__ = tuple.__hash__


class Label(str):
    __slots__ = ()
    __eq__ = __ne__ = __len__ = __hash__ = refused


class Scale(float):
    __slots__ = ()
    __eq__ = __ne__ = __float__ = __bool__ = refused
    __hash__ = float.__hash__


class Posing:
    """Another object, which says that it is a tuple."""

    __class__ = tuple
    __eq__ = __bool__ = refused
    __hash__ = None


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


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("renewed", [True, False])
@pytest.mark.parametrize(
    "make", [lambda: Irreps((1, "o", torch.ones(2))), lambda: Label("0e"), lambda: Scale(2.0), Posing]
)
@pytest.mark.filterwarnings("error")
def test_a_modules_values_are_not_asked_by_methods_of_their_own(make, renewed, batched):
    found = evolve(
        Holds(make, renewed),
        fitness if batched else lambda module: float(module(torch.ones(1, 3))),
        population=4,
        generations=2,
        batched=batched,
    )
    assert found.best_return > -10


def test_names_that_hide_torchs_own_methods_do_no_harm():
    module = Holds(lambda: 1)
    module.modules, module.parameters, module.buffers = [nn.Tanh()], 3, None
    found = evolve(module, fitness, population=4, generations=2, batched=True)
    assert found.generations == 2


def test_the_refusal_names_an_exception_without_text():
    class Closed(list):
        def __iter__(self):
            raise NotImplementedError

    with pytest.raises(
        InputError, match=r"Holds cannot be copied: NotImplementedError: \(line \d+ of test_buf"
    ):
        evolve(Holds(lambda: Closed([1])), fitness, generations=1, batched=True)


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
    kept = Kept(module)
    module.value = after
    assert kept.changed() is changed
    kept.restore()
    assert module.value is before
