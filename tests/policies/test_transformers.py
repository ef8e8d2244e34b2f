"""Unmodified models of transformers: members return the outputs of the module with their parameters."""

import warnings

import pytest
import torch
from tests.later import Later, needs
from torch import nn

from escalade.perturbation import GaussianPopulation
from escalade.perturbation.registry import make_source
from escalade.policies.population.held_module import HeldModule
from escalade.policies.population.layout import Layout
from escalade.policies.population.members import Members

transformers = Later("transformers")
# torch and transformers raise many warnings.
pytestmark = [
    needs("transformers"),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.slow("src/escalade/policies", "src/escalade/perturbation"),
]

COUNT = 3
SMALL = {"vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 2, "bos_token_id": 0, "eos_token_id": 0}
HEADS = {"num_attention_heads": 2, "intermediate_size": 48}


class Called(nn.Module):
    """A model that returns only the part of its output to compare."""

    def __init__(self, model, output, **named):
        super().__init__()
        self.model, self.output, self.named = model.eval(), output, named

    def forward(self, *inputs):
        return getattr(self.model(*inputs, **self.named), self.output)


def gpt2():
    config = {"vocab_size": 20, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32}
    made = transformers.GPT2Config(**config, bos_token_id=0, eos_token_id=0)
    return Called(transformers.GPT2LMHeadModel(made), "logits", use_cache=False), [(2, 9)]


def llama():
    made = transformers.LlamaConfig(**SMALL | HEADS, num_key_value_heads=1)
    return Called(transformers.LlamaForCausalLM(made), "logits", use_cache=False), [(2, 9)]


def bert():
    config = {"vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 2}
    return Called(transformers.BertModel(transformers.BertConfig(**config | HEADS)), "last_hidden_state"), [
        (2, 9)
    ]


def t5():
    config = {"vocab_size": 20, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    made = transformers.T5Config(**config, decoder_start_token_id=0)
    model = transformers.T5ForConditionalGeneration(made)

    class Both(Called):
        def forward(self, tokens, answers):
            return self.model(input_ids=tokens, decoder_input_ids=answers, use_cache=False).logits

    return Both(model, "logits"), [(2, 9), (2, 5)]


def vit():
    config = {"hidden_size": 32, "num_hidden_layers": 2, "image_size": 16, "patch_size": 4}
    return Called(
        transformers.ViTModel(transformers.ViTConfig(**config | HEADS)), "last_hidden_state"
    ), "images"


def mamba():
    made = transformers.MambaConfig(**SMALL, state_size=4)
    return Called(transformers.MambaForCausalLM(made), "logits", use_cache=False), [(2, 9)]


def members_of(module):
    layout = Layout(module)
    source = make_source("low-rank:2", 1, layout.held_shapes)
    population = GaussianPopulation(layout.to_vector(module), 0.05, source, 1, 0, 4)
    return Members(HeldModule(module, layout, source), population, range(1, 1 + COUNT))


@pytest.mark.parametrize("make", [gpt2, llama, bert, t5, vit, mamba])
def test_model_members_equal_dense_members(make):
    torch.manual_seed(0)
    module, shapes = make()
    if shapes == "images":
        inputs = [torch.randn(COUNT, 2, 3, 16, 16)]
    else:
        inputs = [torch.randint(0, 20, (COUNT, *shape)) for shape in shapes]
    members = members_of(module)
    with torch.no_grad():
        found = members(*inputs)
        assert members._held.one_at_a_time is None
        for place in range(COUNT):
            members.write(place)
            right = module(*(part[place] for part in inputs))
            torch.testing.assert_close(
                found[place], right, rtol=0, atol=1e-5 * max(1.0, float(right.abs().max()))
            )


def test_generate_processes_prompts_grouped_by_member():
    torch.manual_seed(0)
    module, _ = gpt2()
    model = module.model
    model.generation_config.pad_token_id = 0
    members, prompts = members_of(model), torch.randint(1, 20, (2, 4))
    length = {"max_new_tokens": 5, "do_sample": False, "use_cache": False}
    with torch.no_grad(), warnings.catch_warnings():
        with members.grouped() as grouped:
            together = grouped.generate(prompts.repeat(COUNT, 1), **length).unflatten(0, (COUNT, 2))
        for place in range(COUNT):
            members.write(place)
            alone = model.generate(prompts, **length)
            assert torch.equal(together[place, :, : alone.shape[1]], alone)
    assert members._held.one_at_a_time is None
