"""Members of any module as one callable: the outputs of the module with each member's parameters."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from tests.devices import PLACE
from torch import nn

from escalade.errors import InputError
from escalade.perturbation import CenterPopulation, GaussianPopulation
from escalade.perturbation.registry import make_source
from escalade.policies.population.held_module import HeldModule
from escalade.policies.population.layout import Layout
from escalade.policies.population.members import Members

COUNT = 3


class Own(nn.Module):
    """A module that computes ``function(self, *inputs)``, with parts and parameters as attributes."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(part) if isinstance(part, torch.Tensor) else part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 16), nn.Linear(16, 20, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.embedding(tokens)))


class Aliased(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 12))
        self.alias = [self.weight.detach()]

    def forward(self, x):
        return x @ self.alias[0]


class Cube(torch.autograd.Function):
    """Written in the old style, with ``ctx`` in ``forward``, which torch.func rejects."""

    @staticmethod
    def forward(ctx, x):
        return x**3


def heads_meet(self, query, key):
    query, key = self.part(query), self.part(key)
    return nn.functional.scaled_dot_product_attention(query, key, key)


def attends(self, query, *others):
    keys = others[0] if others else query
    return self.part(query, keys, keys, need_weights=False)[0]


# For each name, the module and the shapes of its inputs (token shapes if marked as such).
SHARED = {
    "linear": (lambda: nn.Sequential(nn.Linear(12, 30), nn.GELU(), nn.Linear(30, 9)), [(5, 12)]),
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(4, 12, 5, dilation=2, padding="same"), nn.Tanh()),
        [(2, 4, 30)],
    ),
    "conv2d": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 12, 3, 2, groups=4)), [(2, 3, 16, 16)]),
    "one image": (lambda: nn.Conv2d(3, 8, 3, padding=1), [(3, 6, 6)]),
    "conv3d": (lambda: nn.Conv3d(2, 6, 2), [(1, 2, 4, 4, 4)]),
    "tied": (Tied, ["tokens"]),
    "norms": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.RMSNorm(16), nn.PReLU()),
        [(4, 8)],
    ),
    "batch norm": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).eval(), [(2, 3, 6, 6)]),
    "attention": (lambda: Own(attends, part=nn.MultiheadAttention(16, 4, batch_first=True)), [(3, 6, 16)]),
    "attention across": (lambda: Own(attends, part=nn.MultiheadAttention(16, 4)), [(6, 3, 16), (5, 3, 16)]),
    "attention to the same keys in all batches": (
        lambda: Own(heads_meet, part=nn.Linear(16, 8)),
        [(4, 2, 6, 16), (1, 2, 5, 16)],
    ),
    "attention to keys without batches": (
        lambda: Own(heads_meet, part=nn.Linear(16, 8)),
        [(4, 2, 6, 16), (2, 5, 16)],
    ),
    "lstm": (
        lambda: Own(
            lambda self, x: self.part(x)[0], part=nn.LSTM(10, 12, 2, bidirectional=True, batch_first=True)
        ),
        [(3, 5, 10)],
    ),
    "gru": (lambda: Own(lambda self, x: torch.cat(self.part(x)), part=nn.GRU(10, 12)), [(5, 3, 10)]),
    "cells": (
        lambda: Own(
            lambda self, x: self.gru(self.lstm(x)[0]), lstm=nn.LSTMCell(10, 12), gru=nn.GRUCell(12, 9)
        ),
        [(3, 10)],
    ),
    "encoder": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2, enable_nested_tensor=False
        ).eval(),
        [(3, 6, 16)],
    ),
    "encoder and decoder": (
        lambda: nn.Transformer(16, 2, 1, 1, 32, batch_first=True).eval(),
        [(3, 6, 16), (3, 4, 16)],
    ),
    "products": (
        lambda: Own(
            lambda self, x: torch.addmm(self.bias, x, self.first) @ self.second,
            first=torch.randn(8, 12),
            second=torch.randn(12, 10),
            bias=torch.randn(12),
        ),
        [(4, 8)],
    ),
    "views": (
        lambda: Own(
            lambda self, x: sum(x @ part.T for part in self.weight.chunk(2)) @ self.other.transpose(0, 1),
            weight=torch.randn(24, 8),
            other=torch.randn(9, 12),
        ),
        [(4, 8)],
    ),
    "a bias that broadcasts": (
        lambda: Own(
            lambda self, x: torch.addmm(self.bias[:1], x, self.weight),
            weight=torch.randn(8, 12),
            bias=torch.randn(12),
        ),
        [(4, 8)],
    ),
    "float64": (lambda: nn.Sequential(nn.Linear(12, 30), nn.GELU(), nn.Linear(30, 9)).double(), [(5, 12)]),
    "bfloat16": (lambda: nn.Sequential(nn.Linear(12, 30), nn.GELU(), nn.Linear(30, 9)).bfloat16(), [(5, 12)]),
}
WRITTEN = {
    "einsum": (
        lambda: Own(lambda self, x: torch.einsum("bi,oi->bo", x, self.weight), weight=torch.randn(8, 12)),
        [(4, 12)],
        "parameter 'weight' is computed in full .*einsum",
    ),
    "bilinear": (lambda: nn.Bilinear(6, 7, 8), [(4, 6), (4, 7)], "'weight' is computed in full .*bilinear"),
    "transposed": (
        lambda: nn.ConvTranspose2d(4, 12, 3),
        [(2, 4, 6, 6)],
        "computed in full .*conv_transpose2d",
    ),
    "used twice": (
        lambda: Own(lambda self, x: self.part(x) * self.part.weight.abs().mean(), part=nn.Linear(8, 10)),
        [(4, 8)],
        "'part.weight' is computed in full .*abs",
    ),
    "norm over two axes": (
        lambda: nn.LayerNorm((8, 16)),
        [(4, 8, 16)],
        "'(weight|bias)' is computed in full .*layer_norm",
    ),
}
ALONE = {
    "a function of its own": (
        lambda: Own(lambda self, x: Cube.apply(self.part(x)), part=nn.Linear(8, 10)),
        [(4, 8)],
        "one at a time.*must override the setup_context",
    ),
    "no rule": (
        lambda: Own(lambda self, x: self.part(x)[0], part=nn.LSTM(10, 12, proj_size=4)),
        [(5, 3, 10)],
        "one at a time.*Batching rule not implemented",
    ),
    "a branch": (
        lambda: Own(lambda self, x: self.part(x) if x[0, 0] > 0 else -self.part(x), part=nn.Linear(8, 10)),
        [(1, 8)],
        "one at a time.*vmap",
    ),
    "numbers converted to numpy": (
        lambda: Own(
            lambda self, x: x @ torch.from_numpy(self.weight.detach().numpy().copy()),
            weight=torch.randn(8, 12),
        ),
        [(4, 8)],
        "one at a time.*data pointer",
    ),
    "the parameter's memory by another name": (
        Aliased,
        [(4, 8)],
        "one at a time.*outputs of a joint call differ",
    ),
}


def setting(make, shapes, rank=2, perturbation=None, place="cpu"):
    """Return members 1 to 3 of a population of four, and inputs for them."""
    torch.manual_seed(0)
    module = make().to(place)
    dtype, layout = next(module.parameters()).dtype, Layout(module)
    source = make_source(perturbation or f"low-rank:{rank}", 1, layout.held_shapes)
    population = GaussianPopulation(layout.to_vector(module), 0.05, source, 1, 0, 4)
    held = HeldModule(module, layout, source)
    members = Members(held, population, range(1, 1 + COUNT))
    inputs = [
        torch.randint(0, 20, (COUNT, 2, 7)) if shape == "tokens" else torch.randn(COUNT, *shape).to(dtype)
        for shape in shapes
    ]
    return members, [part.to(place) for part in inputs]


def expected(members, inputs):
    """Return the outputs of the module with each member's parameters written into it."""
    held = members._held
    center = held.layout.to_vector(held.module)
    outputs = []
    with torch.no_grad():
        for place in range(len(members)):
            members.write(place)
            outputs.append(held.module(*(part[place] for part in inputs)))
    held.begin(center)
    return torch.stack(outputs)


def check(members, inputs):
    with torch.no_grad():
        found = members(*inputs)
    right = expected(members, inputs)
    allowed = 1e-5 if right.dtype == torch.float32 else 2e-2
    torch.testing.assert_close(found, right, rtol=0, atol=allowed * max(1.0, float(right.abs().max())))
    assert not torch.equal(right[0], right[1])  # members differ


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("name", SHARED)
def test_shared_forward_equals_dense_members_without_a_warning(name, rank):
    members, inputs = setting(*SHARED[name], rank=rank, place=PLACE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(members, inputs)


@pytest.mark.parametrize("name", WRITTEN)
def test_modules_without_a_low_rank_form_are_computed_in_full_with_a_warning(name):
    *made, note = WRITTEN[name]
    members, inputs = setting(*made, rank=1, place=PLACE)
    with pytest.warns(UserWarning, match=note):
        check(members, inputs)
    with warnings.catch_warnings():  # warned once
        warnings.filterwarnings("error", message=".*computed in full")
        check(members, inputs)


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # from torch
@pytest.mark.parametrize("name", ALONE)
def test_modules_that_cannot_be_batched_run_one_member_at_a_time_with_a_warning(name):
    *made, note = ALONE[name]
    members, inputs = setting(*made, rank=1)
    with pytest.warns(UserWarning, match=note):
        check(members, inputs)
    # An error of vmap is remembered for this call only; differing outputs are remembered for good.
    others = name == "the parameter's memory by another name"
    assert (bool(members._held.one_at_a_time), members._together) == (others, others)


@pytest.mark.parametrize("name", ["linear", "tied", "lstm", "attention"])
def test_members_with_full_noise_equal_dense_members(name):
    check(*setting(*SHARED[name], perturbation="full", place=PLACE))


def lstm_runs_in_bfloat16():
    try:
        with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
            nn.LSTM(4, 4)(torch.zeros(2, 1, 4))
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("perturbation", ["full", "low-rank:1"])
@pytest.mark.parametrize("name", ["linear", "conv2d", "attention", "lstm"])
def test_members_are_called_together_under_autocast(name, perturbation):
    if name == "lstm" and not lstm_runs_in_bfloat16():
        pytest.skip("torch cannot run an LSTM in bfloat16 on this processor")
    members, inputs = setting(*SHARED[name], perturbation=perturbation)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = members(*inputs)
        right = expected(members, inputs)
    assert members._held.one_at_a_time is None
    torch.testing.assert_close(found, right, rtol=0, atol=0.05, check_dtype=False)
    assert not torch.equal(right[0], right[1])


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_module_parameters_stay_at_the_center():
    members, inputs = setting(*ALONE["no rule"][:2])
    before = members._held.layout.to_vector(members._held.module)
    with torch.no_grad(), pytest.warns(UserWarning, match="one at a time"):
        members(*inputs)
    np.testing.assert_array_equal(members._held.layout.to_vector(members._held.module), before)


def test_probe_leaves_the_callers_generators_unchanged():
    members, inputs = setting(lambda: nn.Sequential(nn.Linear(8, 10), nn.Dropout(0.5)), [(4, 8)])
    torch.manual_seed(3)
    with torch.no_grad():
        first = members(*inputs)
        torch.manual_seed(3)
        assert torch.equal(members(*inputs), first)
    assert members._held.one_at_a_time is None


def test_recurrent_layers_do_not_flatten_batched_weights(monkeypatch):
    """On a GPU, they flatten their weights into one block, which batched members do not have."""
    laid = []

    def lay(self):
        if any(torch._C._functorch.is_batchedtensor(part) for part in self._flat_weights):
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        laid.append(self)

    monkeypatch.setattr(nn.RNNBase, "flatten_parameters", lay)

    def forward(self, x):
        self.part.flatten_parameters()  # common in user modules
        return self.part(x)[0]

    for perturbation in ("full", "low-rank:1"):
        module = lambda: Own(forward, part=nn.GRU(10, 12))  # noqa: E731
        members, inputs = setting(module, [(5, 3, 10)], perturbation=perturbation)
        laid.clear()
        check(members, inputs)
        assert members._together
        assert not laid


def test_held_module_with_recurrent_layers_can_be_pickled():
    module = nn.GRU(3, 4)
    HeldModule(module, Layout(module), None)
    pickle.dumps(module)


def test_rows_grouped_by_member_run_through_the_module_itself():
    members, inputs = setting(*SHARED["tied"])
    with torch.no_grad():
        separate = members(*inputs)
        with members.grouped() as module:
            grouped = module(inputs[0].flatten(0, 1))
            assert torch.equal(module.forward(inputs[0].flatten(0, 1)), grouped)
        assert torch.equal(grouped, separate.flatten(0, 1))
        assert "forward" not in vars(module)
        with members.grouped() as module, pytest.raises(InputError, match="a multiple of 3 rows"):
            module(inputs[0].flatten(0, 1)[:4])


class Scored(nn.Module):
    """Returns one number for all rows, and the rows, like a language model whose first output is the loss."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, rows):
        found = self.layer(rows)
        return found.mean(), found


def test_grouped_module_calls_hooks_once_and_returns_one_scalar_per_member():
    def before(module, given):
        return (given[0] + 1,)

    def after(module, given, found):
        return tuple(2 * part for part in found)

    module = Scored()
    module.register_forward_pre_hook(before)
    hook = module.register_forward_hook(after)
    members, (inputs,) = setting(lambda: module, [(5, 4)])
    with torch.no_grad():
        numbers, rows = members(inputs)
        with members.grouped() as grouped:
            found = [grouped(inputs.flatten(0, 1)) for _ in range(2)]
    for number, row in found:
        assert torch.equal(number, numbers)
        assert torch.equal(row, rows.flatten(0, 1))
    assert numbers.shape == (COUNT,)
    assert hook.id in members._held.module._forward_hooks


def test_parameters_attribute_returns_dense_parameters():
    members, _ = setting(*SHARED["linear"])
    assert [tuple(part.shape) for part in members.parameters.values()] == [
        (3, 30, 12),
        (3, 30),
        (3, 9, 30),
        (3, 9),
    ]


def test_inputs_without_the_member_axis_are_rejected():
    members, inputs = setting(*SHARED["linear"])
    with pytest.raises(
        InputError, match=r"leading axis of 3 members, not of shape \(5, 12\); use .expand\(3, ...\)"
    ):
        members(inputs[0][0])


class Counts(nn.Module):
    """Stores its last output and its number of calls, in buffers or in attributes."""

    def __init__(self, replaces, registers=True):
        super().__init__()
        self.part, self.replaces = nn.Linear(8, 4), replaces
        for name, kept in {"calls": torch.zeros(()), "last": torch.zeros(4)}.items():
            if registers:
                self.register_buffer(name, kept)
            else:
                setattr(self, name, kept)

    def forward(self, x):
        self.calls += 1
        found = torch.tanh(self.part(x) + 0.5 * self.last) * self.calls
        if self.replaces:
            self.last = found.detach()
        return found


@pytest.mark.parametrize("perturbation", ["full", "low-rank:1"])
@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize("registers", [False, True])
def test_each_member_has_its_own_buffers_and_the_module_keeps_its_values(registers, replaces, perturbation):
    members, (x,) = setting(lambda: Counts(replaces, registers), [(8,)], perturbation=perturbation)
    module = members._held.module
    with torch.no_grad(), pytest.warns(UserWarning, match="it writes to its buffers|one at a time"):
        found = [members(x) for _ in range(3)]
    assert module.calls == 0
    assert not module.last.any()
    for place in range(COUNT):
        with torch.no_grad():
            members.write(place)
            for number in range(3):
                torch.testing.assert_close(found[number][place], module(x[place]))
            module.calls.zero_()
            module.last = torch.zeros(4)


@pytest.mark.filterwarnings("ignore:members of Own are called one at a time")
def test_failure_of_vmap_is_remembered():
    calls = []

    def summed(self, x):
        calls.append(x)
        total = torch.zeros(1, 4)
        total += self.part(x)
        return total

    members, (x,) = setting(lambda: Own(summed, part=nn.Linear(8, 4)), [(1, 8)], perturbation="full")
    for tries in (1, 0):
        calls.clear()
        with torch.no_grad():
            Members(members._held, members._population, range(COUNT))(x)
        assert len(calls) == tries + COUNT


def test_members_called_one_at_a_time_raise_only_that_warning():
    def remembers(self, x):
        self.seen = self.seen + 1
        return x @ self.weight.abs() * self.seen

    def make():
        made = Own(remembers, weight=torch.randn(8, 4))
        made.seen = torch.zeros(())
        return made

    members, (x,) = setting(make, [(5, 8)], rank=1)
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            members(x)
    assert ["one at a time" in str(one.message) for one in said] == [True]


def test_outputs_that_are_not_tensors_are_stacked_per_member_or_shared():
    def outputs(self, x):
        found = self.part(x)
        return {"found": found, "size": float(found.abs().sum()), "none": None, "name": "here"}

    members, (x,) = setting(lambda: Own(outputs, part=nn.Linear(8, 4)), [(8,)], perturbation="full")
    with torch.no_grad(), pytest.warns(UserWarning, match="one at a time"):
        made = members(x)
    torch.testing.assert_close(made["size"], made["found"].abs().sum(dim=1).double())
    assert (made["none"], made["name"]) == (None, "here")

    def pair(self, x):
        return self.part(x), None

    members, (x,) = setting(lambda: Own(pair, part=nn.Linear(8, 4)), [(8,)])
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        found, none = members(x)
    assert none is None
    assert found.shape == (COUNT, 4)


def test_members_equal_to_the_center_are_detected_with_integer_or_masked_outputs():
    class Alias(Aliased):
        def forward(self, x):
            found = super().forward(x)
            return found.argmax(dim=-1) if self.whole else torch.cat([found, torch.full((1,), -1e9)])

    for whole in (True, False):

        def make(whole=whole):
            made = Alias()
            made.whole = whole
            return made

        members, inputs = setting(make, [(8,)], perturbation="full")
        members._population = GaussianPopulation(
            members._held.layout.to_vector(members._held.module),
            3.0,
            members._population.source,
            1,
            0,
            4,
        )
        with torch.no_grad(), pytest.warns(UserWarning, match="outputs of a joint call differ from"):
            members(*inputs)


@pytest.mark.parametrize("members_first", [False, True])
@pytest.mark.parametrize("perturbation", ["full", "low-rank:1"])
@pytest.mark.parametrize("name", ["gru", "encoder", "bfloat16"])
def test_center_output_is_bit_identical_to_the_modules_in_any_call_order(name, perturbation, members_first):
    members, inputs = setting(*SHARED[name], perturbation=perturbation)
    held = members._held
    center = Members(held, CenterPopulation(held.layout.to_vector(held.module)), range(1))
    with torch.no_grad():
        if members_first:
            members(*inputs)
        found = center(*(part[:1] for part in inputs))
        assert torch.equal(found, held.module(*(part[0] for part in inputs))[None])
