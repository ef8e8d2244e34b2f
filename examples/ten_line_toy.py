"""The toy problem of OpenAI's post on evolution strategies (2017): find a vector from rewards of guesses."""

from functools import partial

import torch

from escalade.strategies import OpenAIES

torch.manual_seed(0)
solution = torch.tensor([0.5, 0.1, -0.3])
es = OpenAIES(
    torch.randn(3), population=50, sigma=0.1, shaping="z-score", optimizer=partial(torch.optim.SGD, lr=0.001)
)
for generation in range(300):
    guesses = es.ask()  # shape (50, 3)
    es.tell(-((guesses - solution) ** 2).sum(dim=1))
    if generation % 50 == 49:
        print(f"generation {generation + 1}: {[round(number, 3) for number in es.center.tolist()]}")
print(f"the solution:   {[round(number, 3) for number in solution.tolist()]}")
