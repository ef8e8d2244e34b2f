"""Fine-tuning examples/language_model.py by evolution strategies and by REINFORCE, in the same seconds.

    python benchmarks/language.py train [--seconds 60] [--seeds 1 2 3]
    python benchmarks/language.py table    # the table of results/language.jsonl
    python benchmarks/language.py speed

`train`: from the same model for each seed, every method learns on one core for the same seconds. REINFORCE
samples eight completions of each prompt, and uses the mean reward of a prompt's completions as its baseline,
as GRPO does; it has neither clipping nor a penalty. The accuracy on 500 prompts, with greedy decoding, is
printed and goes to results/language.jsonl. `speed`: forward passes of members at rank 1, alternating with
plain inference of the same module with as many rows; the models of transformers are created from a config.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import escalade
from escalade.perturbation import GaussianPopulation
from escalade.perturbation.registry import make_source
from escalade.policies.population.held_module import HeldModule
from escalade.policies.population.layout import Layout, copy_module
from escalade.policies.population.members import Members

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import language_model as task

RESULTS = Path(__file__).parent / "results" / "language.jsonl"
PROMPTS, SAMPLES, UPDATES = 32, 8, 300


def evolve(model: nn.Module, seconds: float, seed: int, **options: Any) -> int:
    """Train by evolution strategies. Return the number of generations."""

    def fitness(members: Members, generation: int) -> Tensor:
        return task.right_answers(members, PROMPTS, seed=generation)

    settings = {"batched": True, "eval_every": 0, "seconds": seconds, "seed": seed} | options
    return escalade.evolve(model, fitness, **settings).generations


def reinforce(model: nn.Module, seconds: float, seed: int, lr: float) -> int:
    """Train by policy gradient with a prompt's mean reward as baseline. Return the number of updates."""
    generator, optimizer = torch.Generator().manual_seed(seed), torch.optim.Adam(model.parameters(), lr=lr)
    ends, updates = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        text = task.prompts(PROMPTS, seed=updates).repeat_interleave(SAMPLES, dim=0)
        with torch.no_grad():
            for _ in range(task.ANSWER):
                chances = model(text)[:, -1].softmax(dim=-1)
                text = torch.cat([text, torch.multinomial(chances, 1, generator=generator)], dim=1)
        found = task.rewards(text).reshape(PROMPTS, SAMPLES)
        advantage = (found - found.mean(dim=1, keepdim=True)).flatten()
        logits = model(text[:, :-1])[:, task.PROMPT - 1 :].log_softmax(dim=-1)
        said = logits.gather(2, text[:, task.PROMPT :, None])[..., 0].sum(dim=1)
        loss = -(advantage * said).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
    return updates


ADAM = partial(torch.optim.Adam, betas=(0.9, 0.99))
OURS = {"population": 64, "sigma": 0.02, "lr": 0.002, "optimizer": ADAM}
# Their step size of 0.0005 stands for lr / sigma.
QIU = {
    "population": 30,
    "sigma": 0.001,
    "lr": 0.0005 * 0.001,
    "optimizer": torch.optim.SGD,
    "shaping": "z-score",
}
METHODS: dict[str, Callable[..., int]] = {
    "ES, low-rank:1": partial(evolve, perturbation="low-rank:1", **OURS),
    "ES, low-rank:4": partial(evolve, perturbation="low-rank:4", **OURS),
    "ES, full noise": partial(evolve, perturbation="full", **OURS),
    "ES, as Qiu et al. 2025": partial(evolve, **QIU),
    "REINFORCE, lr 0.0003": partial(reinforce, lr=0.0003),
    "REINFORCE, lr 0.001": partial(reinforce, lr=0.001),
}


def train(seconds: float, seeds: list[int]) -> None:
    """Train every method from the same model of each seed."""
    torch.set_num_threads(1)
    for seed in seeds:
        torch.manual_seed(seed)
        start = task.LanguageModel()
        task.learn_as_text(start, UPDATES, seed)
        for name, learn in METHODS.items():
            model = copy_module(start)
            steps = learn(model, seconds, seed)
            line = {"method": name, "seed": seed, "seconds": seconds, "steps": steps}
            line |= {"before": task.accuracy(start), "after": task.accuracy(model)}
            print(line, flush=True)
            with RESULTS.open("a") as file:
                file.write(json.dumps(line) + "\n")


def table() -> str:
    """Return the accuracy before training and after each method, with a column per seed."""
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    seeds = sorted({line["seed"] for line in lines})
    names = list(dict.fromkeys(line["method"] for line in lines))
    found = {(line["method"], line["seed"]): line for line in lines}
    before = [next(line["before"] for line in lines if line["seed"] == seed) for seed in seeds]
    rows = [["method", *(f"seed {seed}" for seed in seeds), "mean", "steps"], ["---"] * (len(seeds) + 3)]
    rows.append(["before", *(f"{share:.3f}" for share in before), f"{statistics.mean(before):.3f}", ""])
    for name in names:
        shares = [found[name, seed]["after"] for seed in seeds]
        steps = ", ".join(str(found[name, seed]["steps"]) for seed in seeds)
        rows.append([name, *(f"{share:.3f}" for share in shares), f"{statistics.mean(shares):.3f}", steps])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class Logits(nn.Module):
    """A model of transformers that returns only its logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.model(tokens, use_cache=False).logits
        return logits


def models() -> dict[str, nn.Module]:
    """The example's transformer, a larger one, and two of transformers with ten million parameters."""
    import transformers

    torch.manual_seed(0)
    ends = {"bos_token_id": 0, "eos_token_id": 0, "vocab_size": 512}
    gpt2 = transformers.GPT2Config(n_embd=384, n_layer=5, n_head=6, n_positions=128, **ends)
    sizes = {"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 6}
    return {
        "the example's": task.LanguageModel(),
        "the example's, 256 wide, 4 layers": task.LanguageModel(256, 4),
        "GPT-2": Logits(transformers.GPT2LMHeadModel(gpt2)),
        "Llama": Logits(transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **ends))),
    }


@torch.no_grad()
def speed() -> None:
    """Print rows per second of plain inference and of members, and their ratio."""
    torch.set_num_threads(1)
    print("| model | parameters | members x rows x signs | plain, ms | members, ms | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, module in models().items():
        module.eval()
        layout = Layout(module)
        source = make_source("low-rank:1", 1, layout.held_shapes)
        population = GaussianPopulation(layout.to_vector(module), 0.001, source, 1, 0, 64)
        for count, rows in ((16, 8), (64, 2), (64, 8)):
            signs = 9 if name.startswith("the") else 32
            members = Members(HeldModule(module, layout, source), population, range(count))
            text = torch.randint(0, len(task.SIGNS), (count, rows, signs))
            calls = (lambda module=module, text=text: module(text.flatten(0, 1))), partial(members, text)
            times = [[_seconds(call) for call in calls] for _ in range(9)]
            plain, ours = (statistics.median(column) for column in zip(*times, strict=True))
            size = f"{count} x {rows} x {signs}"
            ratio = statistics.median(one / other for one, other in times)
            shown = f"{1e3 * plain:.1f} | {1e3 * ours:.1f} | {ratio:.2f}"
            print(f"| {name} | {layout.dimension:,} | {size} | {shown} |", flush=True)


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("train", "table", "speed"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    chosen = parser.parse_args()
    if chosen.what == "speed":
        speed()
    elif chosen.what == "table":
        print(table())
    else:
        train(chosen.seconds, chosen.seeds)


if __name__ == "__main__":
    main()
