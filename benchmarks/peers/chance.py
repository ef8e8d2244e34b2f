"""Random actions: the return without any learning.

python benchmarks/peers/chance.py TASK [--seed 1]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from judge import FEW, Judge, arguments


def main() -> None:
    args = arguments()
    judge = Judge(args.task, args.seed, args.seconds)
    judge.space.seed(args.seed)

    def act(observations: Any) -> Any:
        return np.stack([judge.space.sample() for _ in observations])

    judge.evaluate(act, 5 * FEW, 0)


if __name__ == "__main__":
    main()
