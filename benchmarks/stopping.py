"""Runs reported as solved although they learn nothing, by the mean alone and by Escalade's test.

    python benchmarks/stopping.py

Returns are drawn from N(0, 5) independently of the policy, and the target is 1. Each of 40 runs has 300
generations with an evaluation of 10 episodes in each; one that reaches the target is confirmed by 100 others.

Then the share of confirmations that pass if failures are rare: returns of 500 with a chance of 0.95, else 0,
and a target of 475, their mean.
"""

from __future__ import annotations

import numpy as np

from escalade.training.limits import meets

SEEDS, GENERATIONS, TARGET, DEVIATION = 40, 300, 1.0, 5.0
EVALUATION, CONFIRMATION = 10, 100  # episodes
DRAWS = 20_000


def solved(seed: int, tested: bool) -> float | None:
    """Return the confirmed mean of a run reported as solved; ``tested`` requires a margin."""
    random, tries = np.random.default_rng(seed), 0
    for _ in range(GENERATIONS):
        if random.normal(0, DEVIATION, EVALUATION).mean() < TARGET:
            continue
        returns = random.normal(0, DEVIATION, CONFIRMATION)
        tries += 1
        if meets(returns, TARGET, tries=tries if tested else 1):
            return float(returns.mean())
    return None


def main() -> None:
    for name, tested in {"the mean alone": False, "the test": True}.items():
        means = [mean for seed in range(SEEDS) if (mean := solved(seed, tested)) is not None]
        span = f", confirmed means of {min(means):.2f} to {max(means):.2f}" if means else ""
        print(f"{name}: {len(means)} of {SEEDS} runs are called solved{span}")
    random = np.random.default_rng(0)
    for tries in (2, 5, 10, 30, 100):
        draws = np.where(random.random((DRAWS, CONFIRMATION)) < 0.95, 500.0, 0.0)
        passed = np.mean([meets(returns, 475.0, tries=tries) for returns in draws])
        normal = 0.5 / tries**2
        print(f"rare failures, confirmation {tries}: {passed:.3f} pass; {normal:.5f} of normal returns")


if __name__ == "__main__":
    main()
