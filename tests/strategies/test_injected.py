"""Injected points, and points evaluated one by one: Hansen 2011, arXiv 1110.4181."""

import math

import numpy as np
import pytest
import torch

from escalade.errors import InputError
from escalade.strategies import CMAES, MAES

both = pytest.mark.parametrize("kind", [CMAES, MAES])


def made(kind, dimension=6, **options):
    return kind(np.full(dimension, 2.0), sigma=0.5, direction="minimize", seed=3, **options)


def ellipsoid(x):
    return ((x - 1) ** 2 * 10.0 ** np.arange(x.shape[-1])).sum(-1)


@both
def test_own_members_passed_as_points_give_the_same_step(kind):
    asked, told = made(kind), made(kind)
    for _ in range(5):
        members = asked.ask().numpy()
        asked.tell(ellipsoid(members))
        told.tell(ellipsoid(members), points=members)
    np.testing.assert_allclose(told.center, asked.center, rtol=1e-9)
    assert told.step_size == pytest.approx(asked.step_size, rel=1e-9)
    assert told.result.best_fitness == asked.result.best_fitness


@both
def test_injected_point_replaces_a_member_and_its_step_length_is_limited(kind):
    es, points = made(kind), torch.tensor([[2.1] * 6, [900.0] + [2.0] * 5])
    members = es.ask(inject=points).numpy()
    np.testing.assert_allclose(members[:2], points, rtol=1e-6)
    values = np.arange(2.0, 2 + len(members))
    values[1] = 0.0  # the distant point is the best
    y = (members - 2.0) / 0.5
    y[1] *= (math.sqrt(6) + 12 / 8) / np.linalg.norm(y[1])
    half = len(members) // 2
    raw = math.log((len(members) + 1) / 2) - np.log(np.arange(1, half + 1))
    expected = 2.0 + 0.5 * (raw / raw.sum()) @ y[np.argsort(values)[:half]]
    es.tell(values)
    np.testing.assert_allclose(es.center, expected, rtol=1e-6)
    assert es.step_size <= 0.5 * math.e
    assert es.result.best.tolist() == members[1].tolist()


@both
def test_distant_points_do_not_break_a_search(kind):
    spent = []
    for inject in (None, np.full((1, 6), 1e6)):
        es = made(kind)
        while es.generation < 900 and not es.result.best_fitness < 1e-9:
            es.tell(ellipsoid(es.ask(None if es.generation % 5 else inject).numpy()))
        spent.append(es.generation)
    assert spent[1] < 3 * spent[0] < 900


@both
def test_tell_one_is_reproducible_and_depends_on_the_order_of_calls(kind):
    def run(late):
        es, waiting = made(kind), []
        for _ in range(600):
            waiting.append(es.ask_one())
            if len(waiting) == 5:
                number, point = waiting.pop(2 if late else 0)
                es.tell_one(number, float(ellipsoid(point.numpy())))
        return es

    first, again, other = run(False), run(False), run(True)
    assert torch.equal(first.center, again.center)
    assert not torch.equal(first.center, other.center)
    assert first.generation == 596 // first.population_size
    assert min(es.result.best_fitness for es in (first, other)) < 1e-2 * ellipsoid(np.full(6, 2.0))


def test_point_number_is_used_once_and_discarded_by_load_state_dict():
    es = made(CMAES)
    state, (number, _) = es.state_dict(), es.ask_one()
    for unusable in (None, "1", np.ones(2)):
        with pytest.raises(InputError, match="fitness must be a number"):
            es.tell_one(number, unusable)
    es.tell_one(number, 1.0)
    with pytest.raises(InputError, match="number 1 is unknown or already used"):
        es.tell_one(number, 1.0)
    number, _ = es.ask_one()
    es.load_state_dict(state)
    with pytest.raises(InputError, match="number 2 is unknown or already used"):
        es.tell_one(number, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda es: es.ask(inject=np.zeros(6)),
            r"inject of shape \(6,\) must be finite points of shape \(n, 6\)",
        ),
        (lambda es: es.ask(inject=np.full((1, 6), np.nan)), "inject of shape"),
        (lambda es: es.ask(inject=np.zeros((10, 6))), "10 points are more than the 9 members"),
        (lambda es: es.tell(np.zeros(9), points=np.zeros((8, 6))), "points are 8, but a generation has 9"),
    ],
)
def test_invalid_points_are_rejected_by_name(call, message):
    with pytest.raises(InputError, match=message):
        call(made(CMAES))
