"""An ant in front of a trap, U-shaped walls that block every way ahead.

    python examples/trap.py [--novelty nsr] [--seconds 600]

The return is the distance ahead in meters. A search that maximizes it walks into the U and mostly stays
there. A search for novelty finds the way around. The task is that of Conti et al. 2018 (arXiv 1712.06560),
with Gymnasium's Ant instead of a humanoid; see benchmarks/novelty.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gymnasium
import mujoco
import numpy as np
from gymnasium.envs import mujoco as robots
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

import escalade

BACK, OPENING, HALF_WIDTH = 1.8, 0.9, 2.5
"""The U in meters: distances of its back and its open side ahead of the ant, and half its width."""
BEYOND = 2.6
"""Distance in meters at which an ant has passed the trap, beyond its back by more than a leg's length."""
TIMESTEP, SKIP, STEPS, PERIOD, TORQUE = 0.02, 5, 200, 0.5, 0.4
"""Time and torque of an episode.

They are the seconds per simulator step, simulator steps per action, actions per episode, the clock's period
in seconds, and an action of 1 as a fraction of Ant-v5's torque. With the full torque the ant jumps and falls
over.
"""


def model(walls: bool) -> str:
    """Return Gymnasium's model of the ant with three walls added.

    Euler's method, with steps twice as long as those of RK4 in the model, is several times as fast.
    """
    tree = ElementTree.parse(Path(robots.__file__).parent / "assets" / "ant.xml")
    world, option = tree.find("worldbody"), tree.find("option")
    assert world is not None
    assert option is not None
    option.set("integrator", "Euler")
    option.set("timestep", str(TIMESTEP))
    middle, half = (BACK + OPENING) / 2, (BACK - OPENING) / 2
    for name, place, size in (
        ("back", (BACK, 0.0), (0.1, HALF_WIDTH)),
        ("left", (middle, HALF_WIDTH), (half, 0.1)),
        ("right", (middle, -HALF_WIDTH), (half, 0.1)),
    )[: 3 if walls else 0]:
        box = {"type": "box", "pos": f"{place[0]} {place[1]} 0.5", "size": f"{size[0]} {size[1]} 0.5"}
        ElementTree.SubElement(world, "geom", box, name=name, conaffinity="1", rgba="0.8 0.3 0.2 1")
    return ElementTree.tostring(tree.getroot(), encoding="unicode")


class Ant(AntEnv):
    """Gymnasium's ant in front of the trap, or on open ground.

    The reward is the distance moved ahead. It observes a clock (sine and cosine), the orientation of its body
    (a quaternion) and the angles of its eight joints, but not its position. With a clock a linear policy
    walks after few generations. As in Ant-v5, the episode ends when the body is below 0.2 meters or above 1.
    """

    def __init__(self, walls: bool = True, render_mode: str | None = None) -> None:
        file, path = tempfile.mkstemp(suffix=".xml")
        try:
            with os.fdopen(file, "w") as text:
                text.write(model(walls))
            super().__init__(path, SKIP, reset_noise_scale=0.02, render_mode=render_mode)
        finally:
            os.unlink(path)
        self.observation_space = Box(-np.inf, np.inf, (14,), np.float64)

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        before = float(self.data.qpos[0])
        self.data.ctrl[:] = TORQUE * action
        mujoco.mj_step(self.model, self.data, SKIP)
        x, y, z = self.data.qpos[:3].tolist()
        info = {"x_position": x, "y_position": y}
        return self._get_obs(), x - before, not 0.2 <= z <= 1.0, False, info

    def _get_obs(self) -> NDArray[np.float64]:
        turn = 2 * np.pi * self.data.time / PERIOD
        return np.concatenate(([np.sin(turn), np.cos(turn)], self.data.qpos[3:]))


def make(walls: bool = True, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Create the ant, for episodes of at most twenty seconds."""
    return TimeLimit(Ant(walls, render_mode), STEPS)


SETTINGS: dict[str, Any] = {
    "strategy": "ars:top_directions=5",
    "hidden": (),
    "init": "zeros",
    "bias": False,
    "normalize_observations": False,
    "population": 20,
    "sigma": 0.12,
    "lr": 0.06,
    "behavior": "info:x_position,y_position",
    "eval_every": 1,
    "eval_episodes": 4,
    "target_return": BEYOND,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--novelty", default="nsr", help="none, ns, nsr or nsra")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    novelty = None if args.novelty == "none" else args.novelty
    options = {"novelty": novelty, "seed": args.seed, "seconds": args.seconds, "workers": args.workers}
    run = escalade.train("trap:make", **SETTINGS | options)
    print(f"{run.summary['eval_return_mean']:.1f} m ahead; the trap ends at {BACK:.1f}")


if __name__ == "__main__":
    main()
