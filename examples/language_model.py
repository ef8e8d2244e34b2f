"""A small language model learns arithmetic from a reward without a gradient.

    python examples/language_model.py [--perturbation low-rank:1] [--seconds 60]

Its texts are lines such as ``17=8+3+6``: a number, and a sum or difference of three digits with this value.
First it learns them by backpropagation as text. Its answers then look right, and some of them are. After
that, an evolution strategy maximizes the number of correct answers under greedy decoding, which has no
gradient. All members of the population decode at once; see docs/deep.md.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

import escalade
from escalade.policies.population.members import Members

SIGNS = "\n0123456789=+-"
PROMPT, ANSWER = 4, 5  # characters of a prompt, such as "17=" padded with line ends, and of an answer


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.look, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.look(self.before(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.think(self.between(x))


class LanguageModel(nn.Module):
    """Map characters (batch, length) to logits of the next characters (batch, length, characters)."""

    def __init__(self, width: int = 96, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.signs, self.places = nn.Embedding(len(SIGNS), width), nn.Embedding(PROMPT + ANSWER, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, len(SIGNS))

    def forward(self, text: Tensor) -> Tensor:
        x = self.signs(text) + self.places(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def line(chance: random.Random) -> str:
    """Return a random line such as ``17=8+3+6``, padded in front."""
    first, *others = (chance.randrange(10) for _ in range(3))
    signs = [chance.choice("+-") for _ in others]
    answer = f"{first}" + "".join(sign + str(digit) for sign, digit in zip(signs, others, strict=True))
    value = value_of(answer)
    return line(chance) if value is None or value < 0 else f"{value}=".rjust(PROMPT, "\n") + answer


def value_of(answer: str) -> int | None:
    """Return the value of an answer, or None if it is not a sum of three digits."""
    digits, signs = answer[0::2], answer[1::2]
    if not (len(answer) == ANSWER and digits.isdecimal() and set(signs) <= set("+-")):
        return None
    return int(digits[0]) + sum(int(sign + digit) for sign, digit in zip(signs, digits[1:], strict=True))


def encoded(lines: list[str]) -> Tensor:
    return torch.tensor([[SIGNS.index(sign) for sign in text] for text in lines])


def learn_as_text(model: LanguageModel, updates: int, seed: int) -> None:
    """Learn to predict the next character of random lines by backpropagation."""
    chance, optimizer = random.Random(seed), torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(updates):
        text = encoded([line(chance) for _ in range(64)])
        found = model(text[:, :-1])[:, PROMPT - 1 :]
        loss = nn.functional.cross_entropy(found.flatten(0, 1), text[:, PROMPT:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def rewards(text: Tensor) -> Tensor:
    """Return 1 for each line (..., characters) whose answer has the right value, otherwise 0."""
    found = []
    for signs in text.flatten(0, -2).tolist():
        decoded = "".join(SIGNS[sign] for sign in signs)
        found.append(float(value_of(decoded[PROMPT:]) == int(decoded[: PROMPT - 1].strip() or -1)))
    return torch.tensor(found).reshape(text.shape[:-1])


def prompts(count: int, seed: int) -> Tensor:
    chance = random.Random(seed)
    return encoded([line(chance)[:PROMPT] for _ in range(count)])


def answered(model: Callable[[Tensor], Tensor], text: Tensor) -> Tensor:
    """Append greedily decoded answers of the model, or of members, to prompts (..., characters)."""
    for _ in range(ANSWER):
        text = torch.cat([text, model(text)[..., -1:, :].argmax(dim=-1)], dim=-1)
    return text


def right_answers(members: Members, count: int, seed: int) -> Tensor:
    """Return each member's fraction of correct answers to ``count`` prompts, the same for all members."""
    return rewards(answered(members, prompts(count, seed).expand(len(members), -1, -1))).mean(dim=1)


@torch.no_grad()
def accuracy(model: LanguageModel, count: int = 500) -> float:
    """Return the fraction of correct answers to prompts that no generation has used."""
    return float(rewards(answered(model, prompts(count, seed=10**9))).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perturbation", default="low-rank:1", help="full, or low-rank:R")
    parser.add_argument("--population", type=int, default=64)
    parser.add_argument("--sigma", type=float, default=0.02)
    parser.add_argument("--lr", type=float, default=0.002)
    parser.add_argument("--updates", type=int, default=300, help="updates by backpropagation")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--generations", type=int, help="limit of generations")
    parser.add_argument("--prompts", type=int, default=32, help="prompts per generation")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    torch.manual_seed(chosen.seed)
    model = LanguageModel()
    learn_as_text(model, chosen.updates, chosen.seed)
    print(f"after {chosen.updates} updates on text: {accuracy(model):.0%} of the answers are correct")

    def fitness(members: Members, generation: int) -> Tensor:
        return right_answers(members, chosen.prompts, seed=generation)

    result = escalade.evolve(
        model,
        fitness,
        batched=True,
        perturbation=chosen.perturbation,
        population=chosen.population,
        sigma=chosen.sigma,
        lr=chosen.lr,
        optimizer=partial(torch.optim.Adam, betas=(0.9, 0.99)),
        eval_every=0,
        seconds=chosen.seconds,
        generations=chosen.generations,
        seed=chosen.seed,
    )
    print(f"after {result.generations} more generations: {accuracy(model):.0%}")


if __name__ == "__main__":
    main()
