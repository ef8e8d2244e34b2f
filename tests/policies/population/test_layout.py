"""Layout of a module's parameters in the flat vector: order, transposition, types, memory."""

import numpy as np
import pytest
import torch
from torch import nn

from escalade.errors import InputError
from escalade.policies.networks import layout_of
from escalade.policies.population.layout import Layout, copy_module


def module():
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2), nn.Linear(2, 4, bias=False))
    made[1].weight.requires_grad_(False)
    return made


@pytest.mark.parametrize("transposed", [(), ("0.weight",), ("0.weight", "2.weight")])
def test_vector_is_read_written_and_stacked_in_the_same_order(transposed):
    made = module()
    layout = Layout(made, transposed)
    assert list(layout.shapes) == ["0.weight", "0.bias", "1.bias", "2.weight"]
    assert layout.dimension == 6 + 2 + 2 + 8
    vector = layout.to_vector(made)
    first = made[0].weight.T if "0.weight" in transposed else made[0].weight
    np.testing.assert_array_equal(vector[:6], first.detach().numpy().reshape(-1))
    members = np.stack([vector, 2 * vector, 3 * vector])
    stacked = layout.stack(members)
    for row, member in enumerate(members):
        layout.writer(made)(member)
        np.testing.assert_array_equal(layout.to_vector(made), member)
        for name, part in made.named_parameters():
            if name in stacked:
                assert torch.equal(stacked[name][row], part)
    assert "1.weight" not in stacked


def test_members_are_cast_to_the_parameter_dtypes():
    made = nn.Linear(2, 2).double()
    made.bias = nn.Parameter(torch.zeros(2, dtype=torch.bfloat16))
    layout = Layout(made)
    stacked = layout.stack(np.ones((3, 6), np.float32))
    assert {name: part.dtype for name, part in stacked.items()} == {
        "weight": torch.float64,
        "bias": torch.bfloat16,
    }
    assert layout.to_vector(made).dtype == np.float32


def test_only_plain_stacks_store_weights_transposed():
    plain = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    assert [part.transposed for part in layout_of(plain).parts] == [True, False, True, False]
    other = nn.Sequential(nn.Linear(3, 2), nn.GELU())
    assert not any(part.transposed for part in layout_of(other).parts)


def test_copy_shares_no_memory_and_keeps_tied_parameters():
    made = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    made[1].weight = made[0].weight
    copied = copy_module(made)
    assert copied[1].weight is copied[0].weight
    assert copied[0].weight.data_ptr() != made[0].weight.data_ptr()


def test_sparse_parameter_is_rejected_by_name():
    made = nn.Linear(2, 2)
    made.links = nn.Parameter(torch.eye(3).to_sparse())
    with pytest.raises(InputError, match=r"parameter 'links' is .*sparse_coo, but only dense"):
        Layout(made)


def test_autocast_uses_the_newly_written_parameters():
    made, inputs = nn.Linear(4, 4), torch.ones(1, 4)
    layout = Layout(made)
    write, seen = layout.writer(made), []
    with torch.autocast("cpu", torch.bfloat16):
        for number in (1.0, 2.0, 3.0):
            write(np.full(layout.dimension, number, np.float32))
            seen.append(made(inputs)[0, 0].item())
    assert seen == [5.0, 10.0, 15.0]
