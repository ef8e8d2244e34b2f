"""How many runs that learn nothing are called solved, by the mean alone and by the test that Escalade uses.

    python benchmarks/stopping.py

Returns are drawn from N(0, 5) whatever the policy does, and the target is 1. Each of 40 runs has 300
generations with an evaluation of 10 episodes in each; one that reaches the target is confirmed by 100 others.
"""

from __future__ import annotations

import numpy as np

from escalade.training.target import meets

SEEDS, GENERATIONS, TARGET, DEVIATION = 40, 300, 1.0, 5.0
EVALUATION, CONFIRMATION = 10, 100  # episodes


def solved(seed: int, tested: bool) -> float | None:
    """The confirmed mean of a run that is called solved; ``tested`` asks each confirmation for its margin."""
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


if __name__ == "__main__":
    main()
