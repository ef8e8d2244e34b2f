"""SAC of RLtools, a library in C++, with its defaults, on its own version of Pendulum-v1.

    python benchmarks/peers/rltools_sac.py Pendulum-v1 [--seed 1] [--seconds 600]

It trains on the library's own pendulum, as its documentation advises for speed, and is judged on Gymnasium's.
The first start compiles for some 14 seconds, and stores the result in the folder for temporary files. A later
start is measured.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from judge import Done, Judge, arguments
from rltools import SAC
from tasks import HERE

PENDULUM = {"path": str(HERE / "rltools_pendulum"), "observation_dim": 3, "action_dim": 1}
TORQUE = 2.0  # actions of RLtools are between -1 and 1
STEPS = 1_000_000
BETWEEN = 100  # steps from one look of the judge to the next


def acting(state: Any) -> Any:
    """Return the deterministic actions of the present policy."""

    def act(observations: Any) -> Any:
        return np.stack([TORQUE * state.action(row) for row in observations.astype(np.float32)])

    return act


def main() -> None:
    args = arguments()
    if args.task.name != "Pendulum-v1":
        raise SystemExit(f"{args.task.name}: RLtools runs on Pendulum-v1 alone here")
    judge = Judge(args.task, args.seed, args.seconds)
    made = SAC(PENDULUM, interface_name="pendulum", enable_evaluation=False, STEP_LIMIT=STEPS)
    state, steps = made.State(args.seed), 0
    with suppress(Done):
        while True:
            state.step()
            steps += 1
            if steps % BETWEEN == 0:
                judge.look(acting(state), steps)


if __name__ == "__main__":
    main()
