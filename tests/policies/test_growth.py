"""A larger network that begins with a smaller one's weights computes what the smaller one did."""

import pytest
import torch
from gymnasium import spaces
from torch import nn

from escalade import InputError
from escalade.policies.growth import begin_with, check_growth
from escalade.policies.modules import map_state
from escalade.policies.networks import build


def made(seed, policy, inputs, outputs, hidden, **options):
    network = build(policy, inputs, outputs, hidden=hidden, init="xavier", seed=seed, **options)
    with torch.no_grad():
        for number, parameter in enumerate(network.parameters()):  # biases are 0 as they begin
            if parameter.ndim == 1:
                parameter.normal_(generator=torch.Generator().manual_seed(10 * seed + number))
    return network.eval()


def outputs_of(network, observations):
    """What three steps give, each of the same observations."""
    if not hasattr(network, "initial_state"):
        return [network(observations)]
    state = map_state(lambda part: part[None], network.initial_state(0))
    given = []
    for _ in range(3):
        out, state = network(observations, state)
        given.append(out)
    return given


GROWING = {
    "linear": ("linear", (), ()),
    "mlp": ("mlp", (5, 4), (7, 6)),
    "quadratic": ("quadratic", (), ()),
    "gru": ("gru", (5, 3), (6, 8)),
    "lstm": ("lstm", (3,), (5,)),
}


@pytest.mark.parametrize(("policy", "before", "after"), GROWING.values(), ids=GROWING)
@torch.no_grad()
def test_what_the_smaller_network_computed_stays(policy, before, after):
    small, large = made(1, policy, 3, 2, before), made(2, policy, 4, 3, after)
    untouched = [parameter.clone() for parameter in large.parameters()]
    begin_with(large, small)
    seen = torch.tensor([[0.3, -0.7, 1.1, 0.9]])  # the fourth leads to no old unit yet
    for of_large, of_small in zip(outputs_of(large, seen), outputs_of(small, seen[:, :3]), strict=True):
        torch.testing.assert_close(of_large[:, :2], of_small)
    new = zip(large.parameters(), untouched, strict=True)
    assert all((now == first).any() for now, first in new)  # the rest keeps its first numbers


@torch.no_grad()
def test_images_may_get_more_channels():
    small, large = made(1, "nature", (1, 36, 36), 2, ()), made(2, "nature", (2, 36, 36), 3, ())
    begin_with(large, small)
    image = torch.rand(1, 2, 36, 36, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(large(image)[:, :2], small(image[:, :1]))


@torch.no_grad()
def test_the_rules_of_plastic_layers_keep_their_place():
    small, large = made(1, "hebbian", 3, 2, (4,)), made(2, "hebbian", 5, 2, (6,))
    begin_with(large, small)
    rule, before = large[0].rule, small[0].rule
    torch.testing.assert_close(rule[:, :3, :4], before)
    assert (rule[:, 3:, :4] == 0).all()
    assert (rule[:, :, 4:] != 0).all()


def test_buffers_of_the_same_shape_come_along():
    small, large = made(1, "openai-atari", (1, 44, 44), 2, ()), made(2, "openai-atari", (1, 44, 44), 3, ())
    small.set_reference(torch.rand(len(small.reference), 1, 44, 44), 2.0)
    begin_with(large, small)
    assert torch.equal(large.reference_seen, small.reference_seen)


@pytest.mark.parametrize(
    ("small", "large", "said"),
    [
        (("mlp", 3, 2, (5,)), ("mlp", 3, 2, (4,)), "0.weight is 5 x 3, which does not fit into .* 4 x 3"),
        (
            ("mlp", 3, 2, (5,)),
            ("mlp", 3, 2, (5, 5)),
            "Linear, Tanh, Linear, and .* Linear, Tanh, Linear, Tanh, Linear",
        ),
        (("linear", 3, 2, ()), ("quadratic", 3, 2, ()), "has Linear, and the new policy Products, Linear"),
        (("gru", 3, 2, (5,)), ("lstm", 3, 2, (5,)), "GRUCell, Linear, and .* LSTMCell, Linear"),
        (("mlp", 3, 3, (5,)), ("mlp", 3, 2, (5,)), "2.weight is 3 x 5"),
    ],
)
def test_what_has_no_place_is_one_line(small, large, said):
    with pytest.raises(InputError, match=said) as refused:
        begin_with(made(2, *large), made(1, *small))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda size: nn.Conv1d(2, size, 3),
            r"its 0.weight is 4 x 2 x 3, and 8 x 2 x 3 here: a Conv1d cannot",
        ),
        (lambda size: nn.Conv1d(size, 2, 3), "a Conv1d cannot grow, so give it the same size"),
        (
            lambda size: nn.MultiheadAttention(size, 2),
            "0.in_proj_weight .*: a MultiheadAttention cannot grow",
        ),
        (nn.LayerNorm, "its 0.weight is 4, and 8 here: a LayerNorm cannot grow"),
        (lambda size: nn.Conv2d(size, size, 3, groups=2), "a Conv2d cannot grow"),
        (lambda size: nn.LSTM(size, size, 2, bidirectional=True), "a LSTM cannot grow"),
        (lambda size: nn.LSTM(3, size, proj_size=2), "a LSTM cannot grow"),
    ],
)
def test_a_layer_that_cannot_grow_is_refused_by_name_and_copied_where_it_is_of_the_same_size(make, said):
    with pytest.raises(InputError, match=said):
        begin_with(nn.Sequential(make(8)), nn.Sequential(make(4)))
    first, second = (nn.Sequential(make(4)) for _ in range(2))
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(1))
    begin_with(first, second)
    assert all(
        torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True)
    )


def box(*shape):
    return spaces.Box(-1.0, 1.0, shape)


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        (box(3), box(5), True),
        (box(1, 9, 9), box(4, 9, 9), True),
        (box(1, 9, 9), box(1, 12, 12), False),
        (box(2, 3), box(2, 4), False),
        (spaces.Discrete(2), spaces.Discrete(4), True),
        (spaces.Discrete(2), box(2), False),
        (spaces.Tuple([box(1)]), spaces.Tuple([box(2)]), False),
        (spaces.Tuple([box(1)]), spaces.Tuple([box(1)]), True),
        (spaces.Tuple([box(1), box(2)]), spaces.Tuple([box(2), box(1)]), False),
        (spaces.MultiDiscrete([2, 3]), spaces.MultiDiscrete([2, 3]), True),
        (spaces.MultiDiscrete([2, 3]), spaces.MultiDiscrete([3, 2]), False),
        (spaces.Dict(a=box(2), b=box(3)), spaces.Dict(a=box(2), b=box(3)), True),
        (spaces.Dict(a=box(2), b=box(3)), spaces.Dict(a=box(3), b=box(2)), False),
        (spaces.Dict(a=box(2), b=box(3)), spaces.Dict(a=box(2), c=box(3)), False),
        (box(2, 3), box(2, 3), True),
        (box(2, 3), box(3, 2), False),
    ],
)
def test_only_spaces_that_keep_their_order_grow(before, after, fits):
    if fits:
        check_growth(before, after, "observations")
        return
    with pytest.raises(InputError, match="its observations are"):
        check_growth(before, after, "observations")
